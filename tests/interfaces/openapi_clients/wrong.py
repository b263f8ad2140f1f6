"""Mistakes in the use of the client: mypy refuses each marked line, and no other."""

from memory_mesh_client import AuthenticatedClient
from memory_mesh_client.api.search_and_read import list_by_query, search
from memory_mesh_client.api.store import store
from memory_mesh_client.models import Problem, SearchBody, StoreBody

client = AuthenticatedClient(base_url="http://localhost:8710", token="")
store.sync(client=client, body=SearchBody(query="tea"))  # wrong body
store.sync(client=client, body=StoreBody(contents="tea"))  # wrong name of an argument
store.sync(client=client, body=StoreBody(content="tea", tags="drinks"))  # wrong type
search.sync(client=client, body=SearchBody())  # an argument is missing
search.sync(client=client, body=SearchBody(query="tea", mode="exact"))  # wrong choice
list_by_query.sync(client=client, limits=1)  # wrong name in a query
answer = search.sync(client=client, body=SearchBody(query="tea"))
print(answer.results)  # without a look whether there was an error
if isinstance(answer, Problem):
    print(answer.expectation)  # wrong name in an error
elif answer is not None:
    print(answer.results[0].contents)  # wrong name in an answer
    print(answer.results[0].score.strip())  # wrong type in an answer
    print(answer.results[0].similarity + 1)  # a field that an answer may leave out
