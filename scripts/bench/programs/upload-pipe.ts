import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/**
 * The yardstick for uploads: writes each body to a file, then sends the file to the backend on BACKEND_PORT and passes its answer on.
 * It reads no forms and checks nothing.
 */
const backendPort = Number(process.env['BACKEND_PORT'])
const dir = await mkdtemp(join(process.env['DATA_DIR'] ?? tmpdir(), 'pipe-'))
let files = 0

const server = createServer((req, res) => {
  if (req.method === 'GET') res.end()
  else void passOn(req, res)
})
server.listen(Number(process.env['PORT']), '127.0.0.1')

process.once('SIGTERM', () => {
  void rm(dir, { recursive: true, force: true }).then(() => process.exit(0))
})

async function passOn(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const file = join(dir, String(files++))
  await pipeline(req, createWriteStream(file))
  const headers = { 'content-length': req.headers['content-length'] ?? '0' }
  const onward = request({ host: '127.0.0.1', port: backendPort, method: 'POST', headers })
  const answered = once(onward, 'response')
  await pipeline(createReadStream(file), onward)
  const [answer] = await answered
  await pipeline(answer, res)
  await rm(file)
}
