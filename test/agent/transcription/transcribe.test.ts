import { once } from 'node:events'
import { readdir, readlink, stat, truncate, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { transcribe } from '../../../shared/agent/transcription/transcribe.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'

const SIGNAL = new AbortController().signal

describe('an upload that is sent on', () => {
  const folder = useTempFolder({ perTest: true })
  const egress = createEgress({ allowPrivate: true })
  let backend: Server
  let answer: RequestListener
  let file: string

  beforeEach(async () => {
    file = join(folder.path, 'upload')
    await writeFile(file, Buffer.alloc(5_000_000))
    backend = createServer((req, res) => answer(req, res)).listen(0, '127.0.0.1')
    await once(backend, 'listening')
  })
  afterEach(() => {
    backend.close()
    backend.closeAllConnections()
  })
  after(() => egress.close())

  const send = async (path = file, port = (backend.address() as AddressInfo).port, by = egress) => {
    const { size: bytes } = await stat(file)
    return transcribe(
      { fields: [], file: { path, name: 'a.wav', contentType: 'audio/wav', bytes } },
      { instance: 'whisper', url: `http://127.0.0.1:${port}`, key: undefined, headers: {}, timeoutMs: 10_000 },
      { request: by.request, signal: SIGNAL },
    ).catch((cause: Error) => cause)
  }

  const fileIsClosed = () =>
    until(
      async () => {
        const opened = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
        return !(await Promise.all(opened)).includes(file)
      },
      { what: 'the file to be closed' },
    )

  it('is closed when the backend has it', async () => {
    answer = (req, res) => void req.resume().once('end', () => res.end('text'))
    expect(await send()).to.have.property('status', 200)
    await fileIsClosed()
  })

  it('is closed, and not read to its end, when the backend cannot be reached, breaks the connection, or redirects', async () => {
    await truncate(file, 100e9) // A file with a hole, which takes no room.
    expect(await send(file, 1)).to.include({ kind: 'upstream' })
    await fileIsClosed()
    answer = (req) => void req.once('data', () => req.socket.destroy())
    expect(await send()).to.include({ kind: 'upstream' })
    await fileIsClosed()
    answer = (_req, res) => res.writeHead(307, { location: '/' }).end()
    expect(await send()).to.include({ kind: 'upstream' })
    await fileIsClosed()
  })

  it('is closed when its backend may not be called', async () => {
    await truncate(file, 100e9)
    const guarded = createEgress({ allowPrivate: false })
    expect(await send(file, 1, guarded)).to.include({ code: 'egress_refused' })
    await fileIsClosed()
    await guarded.close()
  })

  it('fails when its file cannot be read, and the backend gets no whole request', async () => {
    let whole = 0
    answer = (req, res) => void req.resume().once('end', () => res.end(String(whole++)))
    expect(await send(join(folder.path, 'missing'))).to.be.instanceOf(Error)
    expect(whole).to.equal(0)
  })
})
