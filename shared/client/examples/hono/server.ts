import { AgentEngine, ApiError, RunFailed } from '@agent-engine/client'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'

const { AE_URL = 'http://127.0.0.1:8080/v1', AE_TOKEN, PORT = '3000' } = process.env

/** The token stays on this server: browsers never get it. */
const engine = new AgentEngine({ url: AE_URL, token: AE_TOKEN })

/** The tools that the agent may use without a permission. This server asks no person, so it denies every other tool at once. */
const ALLOWED: readonly string[] = ['Read', 'Glob', 'Grep']

const app = new Hono()

/** Sends a message of a conversation to the agent. The answer streams as events: `text`, `tool`, and `done` or `error` at the end. */
app.post('/chats/:id', async (c) => {
  const { prompt } = await c.req.json<{ prompt?: unknown }>()
  if (typeof prompt !== 'string' || prompt === '') return c.json({ error: 'prompt must be a text' }, 400)
  const chat = await engine.sessions.open(c.req.param('id'))
  const reply = chat.send(prompt, {
    onPermission: (ask) => (ALLOWED.includes(ask.toolName) ? ask.allow() : ask.deny('This application only reads.')),
  })
  await reply.started() // Nothing was sent yet, so a refusal can still become an HTTP status.
  return streamSSE(
    c,
    async (stream) => {
      const send = (event: string, data: object) => stream.writeSSE({ event, data: JSON.stringify(data) })
      stream.onAbort(() => void reply.cancel()) // Ends the run when the page is closed, so that it costs nothing more.
      for await (const { event, data } of reply) {
        if (event === 'text_delta') await send('text', { text: data.text })
        if (event === 'tool_use') await send('tool', { name: data.tool_name, input: data.input })
      }
      const { usage, stopReason } = await reply.result()
      await send('done', { stop_reason: stopReason, tokens: usage?.total_tokens, cost_usd: usage?.cost_usd })
    },
    async (cause, stream) => stream.writeSSE({ event: 'error', data: JSON.stringify(explain(cause)) }),
  )
})

/** The message for the user. Details go to the log. */
function explain(cause: unknown): { error: string } {
  console.error(cause)
  if (cause instanceof RunFailed) return { error: cause.suggestion ?? cause.message }
  return { error: 'The agent cannot be reached.' }
}

app.onError((cause, c) => {
  if (cause instanceof SyntaxError) return c.json({ error: 'the body must be JSON' }, 400)
  if (cause instanceof ApiError && cause.status < 500)
    return c.json({ error: cause.message }, cause.status === 429 ? 429 : 400)
  return c.json(explain(cause), 502)
})

serve({ fetch: app.fetch, port: Number(PORT), hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`The back end listens on http://127.0.0.1:${port}`)
})
