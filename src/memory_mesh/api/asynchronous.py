"""The faces of an asynchronous mesh."""

from memory_mesh.api.aio import AsyncProxy, awaited, entered
from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces


class AsyncMemoryGraph(AsyncProxy[MemoryGraph]):
    """`MemoryGraph` for `async` code: the same methods, awaited."""

    search = awaited(MemoryGraph.search)
    search_many = awaited(MemoryGraph.search_many)
    context = awaited(MemoryGraph.context)
    store = awaited(MemoryGraph.store)
    store_many = awaited(MemoryGraph.store_many)
    evolve = awaited(MemoryGraph.evolve)
    extract = awaited(MemoryGraph.extract)
    ingest = awaited(MemoryGraph.ingest)
    links = awaited(MemoryGraph.links)
    traverse = awaited(MemoryGraph.traverse)
    clusters = awaited(MemoryGraph.clusters)
    link = awaited(MemoryGraph.link)
    unlink = awaited(MemoryGraph.unlink)
    episodes = awaited(MemoryGraph.episodes)
    summarize_episode = awaited(MemoryGraph.summarize_episode)
    reinforce = awaited(MemoryGraph.reinforce)
    dispute = awaited(MemoryGraph.dispute)
    list_quarantined = awaited(MemoryGraph.list_quarantined)
    review_quarantine = awaited(MemoryGraph.review_quarantine)
    conflicts = awaited(MemoryGraph.conflicts)
    resolve_conflict = awaited(MemoryGraph.resolve_conflict)
    undo_review = awaited(MemoryGraph.undo_review)
    explain_memory = awaited(MemoryGraph.explain_memory)
    explain_supersession = awaited(MemoryGraph.explain_supersession)
    decay = awaited(MemoryGraph.decay)
    archive = awaited(MemoryGraph.archive)
    unarchive = awaited(MemoryGraph.unarchive)
    auto_compress = awaited(MemoryGraph.auto_compress)
    consolidate = awaited(MemoryGraph.consolidate)


class AsyncMemoryLane(AsyncProxy[MemoryLane]):
    """`MemoryLane` for `async` code: the same methods, awaited."""

    store = awaited(MemoryLane.store)
    find = awaited(MemoryLane.find)
    feedback = awaited(MemoryLane.feedback)
    on_session_event = awaited(MemoryLane.on_session_event)
    judge = awaited(MemoryLane.judge)
    junk = awaited(MemoryLane.junk)
    session_context = awaited(MemoryLane.session_context)


class AsyncMemoryNotes(AsyncProxy[MemoryNotes]):
    """`MemoryNotes` for `async` code: the same methods, awaited."""

    load = awaited(MemoryNotes.load)
    lint = awaited(MemoryNotes.lint)
    match = awaited(MemoryNotes.match)
    find_relevant = awaited(MemoryNotes.find_relevant)
    format_for_prompt = awaited(MemoryNotes.format_for_prompt)
    build_agent_prompt = awaited(MemoryNotes.build_agent_prompt)
    append = awaited(MemoryNotes.append)
    save = awaited(MemoryNotes.save)
    extract = awaited(MemoryNotes.extract)
    extract_and_save = awaited(MemoryNotes.extract_and_save)
    sync = awaited(MemoryNotes.sync)
    import_files = awaited(MemoryNotes.import_files)
    refresh = awaited(MemoryNotes.refresh)
    feedback = awaited(MemoryNotes.feedback)


class AsyncMemoryTraces(AsyncProxy[MemoryTraces]):
    """`MemoryTraces` for `async` code: the same methods, awaited. `run` is entered with `async
    with`."""

    record = awaited(MemoryTraces.record)
    run = entered(MemoryTraces.run)
    log_experience = awaited(MemoryTraces.log_experience)
    get_all = awaited(MemoryTraces.get_all)
    get = awaited(MemoryTraces.get)
    experiences = awaited(MemoryTraces.experiences)
    similar = awaited(MemoryTraces.similar)
    plan_context = awaited(MemoryTraces.plan_context)
    consolidate = awaited(MemoryTraces.consolidate)
    retention = awaited(MemoryTraces.retention)
    archive = awaited(MemoryTraces.archive)
    keep_decisions = awaited(MemoryTraces.keep_decisions)
