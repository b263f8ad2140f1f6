"""Views of a whole memory for people: numbers, a timeline and a picture of the links. The web console shows them."""

from memory_mesh.faces.handle import Handle


class Overview(Handle):
    """What the reader of a mesh can see, counted and grouped. It only reads."""

    @property
    def store_kind(self) -> str:
        """The kind of the store, such as `sqlite`."""
        return self._source.url.partition(":")[0]


def overview_of(mesh: Handle) -> Overview:
    """Return the overview of what a mesh can see."""
    return Overview(mesh._source, mesh._scope, mesh._root)
