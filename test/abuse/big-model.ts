import { answerDirectives } from '../support/model-server/directives.ts'
import { startModelServer } from '../support/model-server/model-server.ts'

/** A model server that answers the prompt `/pieces COUNT` with that many pieces of 1 KiB, which quickly fills the network buffers. */
const KIB = `${'x'.repeat(1023)} `
const server = await startModelServer({ record: false })
server.otherwise((request) => {
  const count = /^\/pieces (\d+)$/.exec(request.prompt)?.[1]
  return count === undefined ? answerDirectives(request) : [{ text: Array.from({ length: Number(count) }, () => KIB) }]
})
process.stdout.write(`listening ${server.url}\n`)
