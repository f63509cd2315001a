import { DIRECTIVES, obey } from './directives.ts'
import { startModelServer } from './model-server.ts'

/** The model server as a process of its own: listens on PORT, any free one by default, and does what prompts say. */
const server = await startModelServer({ port: Number(process.env['PORT'] ?? 0), record: false })
server.otherwise(obey)
process.stdout.write(`listening ${server.url}\n`)
if (process.stdout.isTTY) process.stdout.write(`Google's format: ${server.googleUrl}\n${DIRECTIVES}`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close())
