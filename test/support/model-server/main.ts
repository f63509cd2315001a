import { answerDirectives, DIRECTIVES } from './directives.ts'
import { startModelServer } from './model-server.ts'

/** The model server as a process: listens on PORT (default: any free port) and follows the directives in prompts. */
const server = await startModelServer({ port: Number(process.env['PORT'] ?? 0), record: false })
server.otherwise(answerDirectives)
process.stdout.write(`listening ${server.url}\n`)
if (process.stdout.isTTY) process.stdout.write(`Google's format: ${server.googleUrl}\n${DIRECTIVES}`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close())
