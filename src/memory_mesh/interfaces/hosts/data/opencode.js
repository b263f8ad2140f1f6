// It gives opencode a memory: recalled memories are added to prompts, and sessions are learnt from when they are idle or deleted.
// Every failure is silent: the session goes on without the memory.
import { spawn } from "node:child_process"

const LIMIT_MS = 3000

export const MemoryMesh = async ({ client, directory }) => {
  const started = new Set()

  // Runs one hook. The request is the first line of its input; messages follow, one on each line.
  const call = (words, request, messages, limit) =>
    new Promise((resolve) => {
      const child = spawn("memory-mesh", ["host", "opencode", ...words], { stdio: ["pipe", "pipe", "ignore"], cwd: directory })
      const timer = limit ? setTimeout(() => child.kill(), limit) : undefined
      let answer = ""
      child.stdout.on("data", (data) => (answer += data))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve(""))
      child.on("close", () => {
        clearTimeout(timer)
        try {
          const given = JSON.parse(answer)
          if (given.systemMessage) void client.tui?.showToast?.({ body: { message: given.systemMessage, variant: "warning" } })?.catch?.(() => {})
          resolve(given.hookSpecificOutput?.additionalContext ?? "")
        } catch {
          resolve("")
        }
      })
      const lines = [{ cwd: directory, ...request }, ...messages]
      child.stdin.end(lines.map((line) => JSON.stringify(line) + "\n").join(""))
    })

  const messagesOf = async (id) => {
    try {
      return (await client.session.messages({ path: { id } })).data ?? []
    } catch {
      return []
    }
  }

  const isSubagent = async (id) => {
    try {
      return Boolean((await client.session.get({ path: { id } })).data?.parentID)
    } catch {
      return true
    }
  }

  return {
    "chat.message": async (input, output) => {
      try {
        const session = input.sessionID
        const prompt = output.parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("\n")
        const events = started.has(session) ? ["user-prompt-submit"] : ["session-start", "user-prompt-submit"]
        started.add(session)
        const texts = await Promise.all(events.map((event) => call([event], { session_id: session, prompt }, [], LIMIT_MS)))
        texts.forEach((text, n) => {
          if (text)
            output.parts.push({
              id: `prt_memorymesh${Date.now().toString(36)}${n}`,
              sessionID: session,
              messageID: output.message.id,
              type: "text",
              text,
              synthetic: true,
            })
        })
      } catch {}
    },

    event: async ({ event }) => {
      try {
        if (event.type === "session.idle") {
          const id = event.properties.sessionID
          if (!(await isSubagent(id))) void call(["stop", "--wait"], { session_id: id }, await messagesOf(id))
        } else if (event.type === "session.deleted") {
          const { id, parentID } = event.properties.info
          if (!parentID) void call(["session-end", "--wait"], { session_id: id }, await messagesOf(id))
          started.delete(id)
        }
      } catch {}
    },
  }
}
