import { obey } from '../support/model-server/directives.ts'
import { startModelServer } from '../support/model-server/model-server.ts'

/** The model server, which for `/pieces COUNT` says so many KiB, one each: that fills the network's buffers in no time. */
const KIB = `${'x'.repeat(1023)} `
const server = await startModelServer({ record: false })
server.otherwise((request) => {
  const count = /^\/pieces (\d+)$/.exec(request.prompt)?.[1]
  return count === undefined ? obey(request) : [{ text: Array.from({ length: Number(count) }, () => KIB) }]
})
process.stdout.write(`listening ${server.url}\n`)
