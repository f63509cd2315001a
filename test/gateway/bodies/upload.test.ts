import { once } from 'node:events'
import fs from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import express, { type RequestHandler } from 'express'
import { createReceiveUpload, type ReceivedUpload } from '../../../services/gateway/bodies/upload.ts'
import type { UploadLimits } from '../../../services/gateway/bodies/upload-form.ts'
import { authenticate } from '../../../services/gateway/middleware/auth.ts'
import { recover } from '../../../services/http/errors.ts'
import { createRoutes } from '../../../services/http/routes.ts'
import { createServer, type HttpServer } from '../../../services/http/server.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const LIMITS = {
  maxFileBytes: 1_000,
  maxFields: 5,
  maxFieldBytes: 500,
  maxUploads: 2,
  windowMs: 100,
  minWindowBytes: 10,
}

const B = 'boundary-7'
const part = (name: string, value: string, extra = '') =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${extra}\r\n\r\n${value}\r\n`
const file = (bytes: number, { name = 'file', fileName = 'a.wav' } = {}) =>
  part(name, 'x'.repeat(bytes), `; filename="${fileName}"\r\nContent-Type: audio/wav`)
const END = `--${B}--\r\n`

describe('uploads', () => {
  const dir = useTempFolder({ perTest: true })
  let server: HttpServer
  let port: number
  let received: ReceivedUpload[]
  /** Uploads that are being received, or wait for it. */
  let arrived: number
  const sockets: Socket[] = []

  const open = async (more: Partial<UploadLimits> = {}) => {
    received = []
    arrived = 0
    const receive = createReceiveUpload(dir.path, { ...LIMITS, ...more })
    const app = express()
    const answer: RequestHandler = async (req, res) => {
      arrived++ // Before anything is awaited: an upload that has to wait is in the line when the next request arrives.
      const upload = await receive(req, res).finally(() => {
        arrived--
      })
      received.push(upload)
      res.json({ fields: upload.fields, file: { ...upload.file, path: undefined } })
    }
    app.use(authenticate(async (tenant = 't1') => ({ tenant: tenantId(tenant), subject: tenant })))
    app.use(createRoutes({ '/': { post: answer } }, []))
    app.use(recover(SILENT_LOG))
    server = createServer(app, { requestTimeoutMs: 150 })
    port = (await server.listen(0, '127.0.0.1')).port
  }

  beforeEach(async () => {
    await open()
  })

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await server.close(0)
  })

  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { 'content-type': `multipart/form-data; boundary=${B}`, ...headers },
      body,
    })
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      connection: response.headers.get('connection'),
      body: (await response.json()) as { error?: { param?: string; message: string } },
    }
  }

  const isEmpty = async () => {
    for (let tries = 0; tries < 200; tries++) {
      if ((await readdir(dir.path)).length === 0) return true
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return false
  }

  /** Opens an upload by hand; resolves with the socket once the head and `body` are sent. */
  const begin = async (body: string, length = 5_000) => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=${B}\r\nContent-Length: ${length}\r\n\r\n${body}`,
    )
    return socket
  }

  it('D9.2: fields keep names, values and order whatever their place, brackets and repetitions included', async () => {
    const { status, body } = await post(
      [part('model', 'm'), part('a[]', '1'), file(9), part('a[]', '2'), part('word_timestamps', 'false'), END].join(''),
    )
    expect(status).to.equal(200)
    expect(body).to.deep.equal({
      fields: [
        ['model', 'm'],
        ['a[]', '1'],
        ['a[]', '2'],
        ['word_timestamps', 'false'],
      ],
      file: { name: 'a.wav', contentType: 'audio/wav', bytes: 9 },
    })
    const [upload] = received
    expect(await readFile(upload?.file.path ?? '', 'latin1')).to.equal('x'.repeat(9))
    await upload?.discard()
    expect(await isEmpty()).to.equal(true)
  })

  const TYPES: [what: string, header: string, type: string][] = [
    ['keeps the parameters of its type', 'Content-Type: audio/webm;codecs=opus', 'audio/webm;codecs=opus'],
    ['keeps a type in another spelling', 'content-type:  audio/ogg; codecs="a; b"  ', 'audio/ogg; codecs="a; b"'],
    ['is of no known type without one', 'X-Other: text/plain', 'application/octet-stream'],
    ['is of no known type with a wrong one', 'Content-Type: audio', 'application/octet-stream'],
  ]
  for (const [what, header, type] of TYPES) {
    it(`D9.2: a file ${what}`, async () => {
      const fields = `${part('model', 'm')}${part('note', 'Content-Type: text/x; filename=')}`
      const upload = `--${B}\r\nContent-Disposition: form-data; name="file"; filename="a.webm"\r\n${header}\r\n\r\nxy\r\n`
      const { body } = await post(`${fields}${upload}${END}`)
      expect(body).to.have.property('file').that.deep.equals({ name: 'a.webm', contentType: type, bytes: 2 })
      await received[0]?.discard()
    })
  }

  it('a file name with a path keeps its last part alone, and names no file of ours', async () => {
    await post([file(1, { fileName: '../../etc/passwd' }), END].join(''))
    const [upload] = received
    expect(upload?.file.name).to.equal('passwd')
    expect(upload?.file.path.startsWith(dir.path)).to.equal(true)
    await upload?.discard()
  })

  it('a file of just the limit is taken, a byte more is 413, and nothing stays on the disk', async () => {
    expect((await post([file(LIMITS.maxFileBytes), END].join(''))).status).to.equal(200)
    await received[0]?.discard()
    const refused = await post([file(LIMITS.maxFileBytes + 1), END].join(''))
    expect(refused).to.deep.include({ status: 413 })
    expect(refused.body.error?.param).to.equal('/file')
    expect(await isEmpty()).to.equal(true)
  })

  it('a declared length beyond every limit is 413 before anything is read', async () => {
    const socket = await begin('', 10_000_000)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).to.contain('413')
  })

  it('a declared length may be that of the file, the fields and a KiB for each part, and not a byte more', async () => {
    const most = LIMITS.maxFileBytes + LIMITS.maxFieldBytes + (LIMITS.maxFields + 1) * 1024
    const form = `\r\n${file(1)}${END}`
    expect((await post('x'.repeat(most - form.length) + form)).status).to.equal(200)
    await received[0]?.discard()
    expect((await post('x'.repeat(most - form.length + 1) + form)).status).to.equal(413)
  })

  it('the connection of a form that is refused is closed, unless the whole form has come', async () => {
    const socket = await begin(file(2_000).slice(0, 1_500))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).to.match(/connection: close/i)
    expect(await post(part('model', 'm') + END)).to.include({ status: 400, connection: 'keep-alive' })
  })

  it('a disk that is full is 503 with Retry-After, and the upload leaves its place', async () => {
    const { createWriteStream } = fs
    const full = mock.method(fs, 'createWriteStream', () => createWriteStream('/dev/full'))
    for (let tries = 0; tries <= LIMITS.maxUploads; tries++)
      expect(await post(file(9) + END)).to.include({ status: 503, retryAfter: '10' })
    full.mock.restore()
    expect((await post(file(9) + END)).status).to.equal(200)
    await received[0]?.discard()
  })

  it('an endless file is answered at the limit, though the client goes on sending', async () => {
    const socket = await begin(file(2_000).slice(0, 1_900), 7_000)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).to.contain('413')
    socket.destroy()
    expect(await isEmpty()).to.equal(true)
  })

  const ONE_FILE = { message: /^send exactly one file, in the field file$/, param: '/file' }
  const LARGE_FIELDS = { message: /^the fields beside the file are larger than 500 bytes together$/ }
  const MANY = { message: /^the form has more than 5 fields/ }
  const BROKEN = { message: /^the body is not a valid multipart form: it is malformed or ends early$/ }
  for (const [what, body, status, { message, param }] of [
    ['no file', part('model', 'm') + END, 400, { message: /^the form has no file/, param: '/file' }],
    ['two files', file(1) + file(1) + END, 400, ONE_FILE],
    ['a file in another field', file(1, { name: 'audio' }) + END, 400, ONE_FILE],
    ['a truncated file', file(5), 400, BROKEN],
    ['garbage', 'this is no form', 400, BROKEN],
    [
      'a part without a name',
      `--${B}\r\nContent-Disposition: form-data\r\n\r\nx\r\n${file(1)}${END}`,
      400,
      { message: /^the form has a part without a usable name$/ },
    ],
    ['many fields', part('a', 'x').repeat(6) + file(1) + END, 400, MANY],
    ['a long name', part('n'.repeat(300), 'x') + file(1) + END, 400, { message: /name has more than 200 bytes$/ }],
    ['a large field', part('prompt', 'x'.repeat(600)) + file(1) + END, 413, LARGE_FIELDS],
    ['a field of few characters but many bytes', part('prompt', 'é'.repeat(300)) + file(1) + END, 413, LARGE_FIELDS],
    ['many parts that are no fields', `--${B}\r\nX-Note: 1\r\n\r\nx\r\n`.repeat(7) + file(1) + END, 400, MANY],
    ['fields that are large together', part('prompt', 'x'.repeat(300)).repeat(2) + file(1) + END, 413, LARGE_FIELDS],
  ] as [string, string, number, { message: RegExp; param?: string }][])
    it(`a form with ${what} is ${status}, says why, and leaves nothing`, async () => {
      const { status: given, body: answer } = await post(body)
      expect(given).to.equal(status)
      expect(answer.error?.message).to.match(message)
      expect(answer.error?.param).to.equal(param)
      expect(await isEmpty()).to.equal(true)
    })

  it('fields of just the limit are taken', async () => {
    const form = part('prompt', 'x'.repeat(LIMITS.maxFieldBytes - 'prompt'.length)) + file(1) + END
    expect((await post(form)).status).to.equal(200)
    await received[0]?.discard()
  })

  for (const [what, headers] of [
    ['JSON', { 'content-type': 'application/json' }],
    ['another multipart', { 'content-type': 'multipart/mixed; boundary=x' }],
    ['a compressed form', { 'content-encoding': 'gzip' }],
    ['a type that only begins like it', { 'content-type': `multipart/form-data-x; boundary=${B}` }],
    ['a type that only ends like it', { 'content-type': `x-multipart/form-data; boundary=${B}` }],
  ] as const)
    it(`D9.1: ${what} is 415`, async () => {
      expect((await post(file(1) + END, headers)).status).to.equal(415)
    })

  it('a form without an encoding, and a type in capitals or with a space behind it, are taken', async () => {
    for (const headers of [
      { 'content-encoding': 'identity' },
      { 'content-type': `Multipart/Form-Data; boundary=${B}` },
      { 'content-type': `multipart/form-data ; boundary=${B}` },
    ]) {
      expect((await post(file(1) + END, headers)).status).to.equal(200)
      await received.pop()?.discard()
    }
  })

  it('a form that fails by itself, or whose file cannot be created, leaves nothing and no rejected promise without an owner', async () => {
    const unowned: unknown[] = []
    const note = (cause: unknown) => void unowned.push(cause)
    process.on('unhandledRejection', note) // mocha passes over them.
    try {
      expect((await post('this is no form')).status).to.equal(400)
      expect((await post(file(5))).status).to.equal(400)
      expect(await isEmpty()).to.equal(true)
      await rm(dir.path, { recursive: true })
      expect((await post(file(5) + END)).status).to.equal(500)
    } finally {
      process.off('unhandledRejection', note)
      await mkdir(dir.path, { recursive: true })
    }
    expect(await isEmpty()).to.equal(true)
    expect(unowned).to.deep.equal([])
  })

  it('a form without a boundary is 400', async () => {
    expect((await post(file(1) + END, { 'content-type': 'multipart/form-data' })).status).to.equal(400)
  })

  it('D9.2: a client that leaves in the middle leaves nothing', async () => {
    const socket = await begin(file(600).slice(0, 500))
    while ((await readdir(dir.path)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    socket.destroy()
    expect(await isEmpty()).to.equal(true)
  })

  it('a client that sends too slowly is 408 and leaves nothing', async () => {
    const socket = await begin(file(600).slice(0, 500))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).to.contain('408')
    socket.destroy()
    expect(await isEmpty()).to.equal(true)
  })

  it('an upload may take longer than other requests, as long as it arrives fast enough', async () => {
    const form = file(900) + END
    const socket = await begin('', form.length)
    for (let at = 0; at < form.length; at += 60) {
      socket.write(form.slice(at, at + 60))
      await sleep(20) // The time that the upload takes is what this test is about: above 150 ms in all.
    }
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).to.contain('200 OK')
  })

  it('the file of a form that is refused when the file is whole already is deleted', async () => {
    const { status } = await post([file(9), part('a', 'x'.repeat(300)), part('b', 'x'.repeat(300)), END].join(''))
    expect(status).to.equal(413)
    expect(await isEmpty()).to.equal(true)
  })

  const reopen = async (more: Partial<UploadLimits>) => {
    await server.close(0)
    await open(more)
  }

  /** Begins as many uploads as there are places. */
  const takeAll = async () => {
    const begun = [await begin(file(600).slice(0, 500)), await begin(file(600).slice(0, 500))]
    await until(async () => (await readdir(dir.path)).length === 2, { what: 'both uploads to have a file' })
    return begun
  }

  const arrive = (count: number) =>
    until(() => arrived === count, { what: `${count} uploads to be there`, lastSeen: () => arrived })

  it('D9.3: an upload beyond the places waits for its turn, and nothing of it is on the disk until then', async () => {
    await reopen({ windowMs: 10_000 })
    const [first] = await takeAll()
    const waiting = post(file(900) + END)
    await arrive(3)
    expect(await readdir(dir.path)).to.have.length(2)
    first?.destroy()
    expect((await waiting).status).to.equal(200)
    await received[0]?.discard()
  })

  it('D9.3: thirty at once are all taken, though there are two places', async () => {
    await reopen({})
    const discarding = setInterval(() => received.splice(0).map((upload) => upload.discard()), 1)
    const all = await Promise.all(Array.from({ length: 30 }, () => post(file(9) + END)))
    clearInterval(discarding)
    expect(all.map(({ status }) => status)).to.deep.equal(all.map(() => 200))
  })

  it('D9.3: an upload whose turn does not come in time is 503 with Retry-After', async () => {
    await reopen({ waitMs: 50, windowMs: 10_000 })
    await takeAll()
    const { status, retryAfter } = await post(file(1) + END)
    expect([status, retryAfter]).to.deep.equal([503, '10'])
  })

  it('a client that leaves while its upload waits frees its place in the line', async () => {
    await reopen({ maxWaiting: 1, windowMs: 10_000 })
    const [first] = await takeAll()
    const leaver = await begin('')
    await arrive(3)
    expect((await post(file(1) + END)).status).to.equal(503)
    leaver.destroy()
    await arrive(2)
    const next = post(file(1) + END)
    await arrive(3)
    first?.destroy()
    expect((await next).status).to.equal(200)
    await received[0]?.discard()
  })

  it('D9.3: a tenant may take all places; another one finds its share of them all the same, and none above it', async () => {
    await reopen({ tenantShare: 0.5, windowMs: 10_000, waitMs: 100 })
    const [first] = await takeAll()
    const send = async (tenant: string) => (await post(file(1) + END, { authorization: tenant })).status
    expect(await send('t2')).to.equal(200) // It stays until it is discarded, as while its backend works.
    expect(await send('t3'), 'shares are taken by two tenants').to.equal(503)
    first?.destroy()
    await until(async () => (await readdir(dir.path)).length === 2, { what: 'the first upload to be over' })
    expect(await send('t2'), 'a tenant with its share counts everything').to.equal(429)
  })

  it('D9.3: while another tenant waits, the uploads of one with its share wait behind', async () => {
    await reopen({ tenantShare: 0.5, windowMs: 10_000 })
    const [first] = await takeAll()
    await post(file(1) + END, { authorization: 't2' })
    const order: string[] = []
    const send = async (tenant: string) => {
      await post(file(1) + END, { authorization: tenant })
      order.push(tenant)
      await received.at(-1)?.discard()
    }
    const own = send('t1')
    await arrive(3)
    const other = send('t3')
    await arrive(4)
    first?.destroy()
    await received[0]?.discard()
    await Promise.all([own, other])
    expect(order).to.deep.equal(['t3', 't1'])
  })

  it('D9.3: what a tenant may take of the disk leaves room for the shares of others, within the limit for all', async () => {
    await reopen({ tenantShare: 0.5, maxUploads: 100, maxSpoolBytes: 3_000, waitMs: 50 })
    const send = async (tenant: string) => (await post(file(400) + END, { authorization: tenant })).status // About 600 bytes with the form.
    const own = [await send('t1'), await send('t1'), await send('t1'), await send('t1'), await send('t1')]
    expect(own).to.deep.equal([200, 200, 200, 200, 429])
    expect([await send('t2'), await send('t2'), await send('t2')]).to.deep.equal([200, 200, 429])
    for (const upload of received) await upload.discard()
  })

  it('D2.9: a tenant with its share whose turn does not come in time gets 429', async () => {
    await reopen({ tenantShare: 0.5, waitMs: 50, windowMs: 10_000 })
    await takeAll()
    expect((await post(file(1) + END)).status).to.equal(429)
  })

  it('D9.3: files take no more of the disk than they may together, however their lengths are declared', async () => {
    await reopen({ maxSpoolBytes: 1_500, waitMs: 100 })
    const form = file(900) + END // Declares about 1,000 bytes with the rest of the form.
    expect((await post(form)).status).to.equal(200)
    expect((await post(form)).status).to.equal(503)
    await received[0]?.discard()
    const stream = new Blob([file(100) + END]).stream()
    const chunked = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { 'content-type': `multipart/form-data; boundary=${B}` },
      body: stream,
      duplex: 'half',
    })
    expect(chunked.status).to.equal(200)
    expect((await post(form)).status, 'beside the 100 bytes that a chunked one turned out to have').to.equal(200)
    for (const upload of received) await upload.discard()
  })

  it('an upload that is refused leaves its place at once, though its client goes on sending', async () => {
    for (let refused = 0; refused < LIMITS.maxUploads; refused += 1) {
      const socket = await begin(file(2_000).slice(0, 1_500))
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(String(answer)).to.contain('413')
    }
    expect((await post(file(1) + END)).status).to.equal(200)
  })

  it('a client that waits for "continue" gets it', async () => {
    const body = file(1) + END
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: multipart/form-data; boundary=${B}\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    const [first] = (await once(socket, 'data')) as [Buffer]
    expect(String(first)).to.contain('100 Continue')
    socket.write(body)
    const [second] = (await once(socket, 'data')) as [Buffer]
    expect(String(second)).to.contain('200 OK')
  })
})
