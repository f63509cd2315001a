import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { createReceiveUpload } from '../../../services/gateway/bodies/upload.ts'
import type { TranscriptionDeps } from '../../../services/gateway/routes/transcriptions.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import type { Egress } from '../../../shared/platform/net/port.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { type SealContext, seal } from '../../../shared/tenancy/secrets/seal.ts'
import { EMPTY_CONFIG, type StoredInstance, type TenantConfig } from '../../../shared/tenancy/tenant-config/config.ts'
import { CredentialReader } from '../../../shared/tenancy/tenant-config/credentials.ts'
import type { LiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { type Gateway, refusalOf, useGateways } from '../setup.ts'

const PATH = '/audio/transcriptions'
const KEY = 'sk-backend-0123456789'
const SECRET = 'sk-secret-0123456789'
const ring = createKeyring(randomBytes(32))

type Call = { url: string; method: string; headers: IncomingHttpHeaders; raw: Buffer; closed: Promise<unknown> }

const sealFor = (kind: SealContext['kind'], name: string, text: string) =>
  seal(text, { tenant: DEFAULT_TENANT, kind, name }, ring)

function instance(name: string, more: Partial<StoredInstance> = {}): StoredInstance {
  const at = '2026-11-22T09:00:00.000Z'
  return { name, type: 'openai-compatible', revision: 'rev_1', created_at: at, updated_at: at, ...more }
}

describe('the transcription proxy', () => {
  const startGateway = useGateways()
  const dir = useTempFolder({ perTest: true })
  let gateway: Gateway
  let egress: Egress
  let backend: Server
  let backendUrl: string
  let answer: RequestListener
  const calls: Call[] = []
  const sockets: Socket[] = []

  beforeEach(async () => {
    calls.length = 0
    answer = (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"hello"}')
    backend = createServer((req, res) => {
      const chunks: Buffer[] = []
      const call: Call = {
        url: req.url ?? '',
        method: req.method ?? '',
        headers: req.headers,
        raw: Buffer.alloc(0),
        closed: once(res, 'close'),
      }
      calls.push(call)
      req.on('data', (chunk: Buffer) => chunks.push(chunk))
      req.on('end', () => {
        call.raw = Buffer.concat(chunks)
        answer(req, res)
      })
    })
    backend.listen(0, '127.0.0.1')
    await once(backend, 'listening')
    backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
    egress = createEgress({ allowPrivate: true })
    gateway = await startGateway({ transcription: depsOf(configOf()) })
  })

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await egress.close()
    backend.close()
    backend.closeAllConnections()
  })

  const configOf = (): TenantConfig => ({
    ...EMPTY_CONFIG,
    secrets: [
      { name: 'team', key: 'sk-s…', sealed: sealFor('secret', 'team', SECRET), updated_at: '2026-11-22T09:00:00.000Z' },
    ],
    instances: [
      instance('whisper', {
        url: `${backendUrl}/v1//`,
        options: { headers: { 'x-team': 'canary…' } },
        sealed: sealFor('instance', 'whisper', JSON.stringify({ key: KEY, headers: { 'x-team': 'canary-header' } })),
      }),
      instance('with-secret', { url: `${backendUrl}/v1`, secret: 'team' }),
      instance('secret-gone', { url: `${backendUrl}/v1`, secret: 'gone' }),
      instance('open', { type: 'openai', url: `${backendUrl}/v1` }),
      instance('claude', { type: 'anthropic' }),
      instance('gemini', { type: 'google' }),
      instance('llama', { type: 'ollama', url: backendUrl }),
      instance('offline', { url: 'http://127.0.0.1:1/v1' }),
      instance('quick', { url: `${backendUrl}/v1`, options: { timeout_secs: 1 } }),
    ],
  })

  const depsOf = (config: TenantConfig): TranscriptionDeps => ({
    configs: { get: async () => config } as unknown as LiveConfigs,
    credentials: new CredentialReader(ring),
    assertBudget: async () => {},
    receive: createReceiveUpload(dir.path),
    egress,
  })

  type Fields = readonly (readonly [name: string, value: string])[]
  const to = (name: string, model = 'm'): Fields => [
    ['provider_instance', name],
    ['model', model],
  ]
  const whisper = to('whisper', 'large-v3')

  const formOf = (
    fields: Fields,
    file: Blob | undefined = new Blob(['RIFF…'], { type: 'audio/wav' }),
    name = 'a.wav',
  ) => {
    const form = new FormData()
    for (const [field, value] of fields) form.append(field, value)
    if (file) form.append('file', file, name)
    return form
  }
  const post = (form: FormData, signal?: AbortSignal) =>
    fetch(gateway.url + PATH, { method: 'POST', body: form, ...(signal && { signal }) })
  const received = async ({ raw, headers }: Call) =>
    [
      ...(await new Response(new Uint8Array(raw), {
        headers: { 'content-type': headers['content-type'] ?? '' },
      }).formData()),
    ] as [string, string | File][]
  const only = (): Call => {
    const [call, ...others] = calls
    if (!call || others.length > 0) throw new Error(`the backend was called ${calls.length} times`)
    return call
  }
  const nothingLeft = () =>
    until(async () => (await readdir(dir.path)).length === 0, { what: 'the folder of uploads to be empty' })

  describe('what the backend receives', () => {
    it('api.md Transcription: every field with its name and value in the order it came in, and not provider_instance', async () => {
      const fields: Fields = [
        ['temperature', '0.2'],
        ...whisper,
        ['language', 'de'],
        ['prompt', 'Größe: „10 €“ 🎧\r\nzweite Zeile'],
        ['response_format', 'verbose_json'],
        ['long_audio', 'true'],
        ['chunk_minutes', '10'],
        ['diarize_backend', 'pyannote'],
        ['left_speaker', 'Agent'],
        ['right_speaker', 'Kunde'],
        ['timestamp_granularities[]', 'word'],
        ['timestamp_granularities[]', 'segment'],
        ['__proto__', 'x'],
        ['constructor', 'y'],
        ['empty', ''],
        ['blank', '  '],
      ]
      expect((await post(formOf(fields))).status).to.equal(200)
      const parts = await received(only())
      expect(parts.slice(0, -1)).to.deep.equal(fields.filter(([name]) => name !== 'provider_instance'))
      await nothingLeft()
    })

    for (const [what, fields] of [
      ['absent', []],
      ['true', [['word_timestamps', 'true']]],
      ['an explicit false', [['word_timestamps', 'false']]],
    ] as const)
      it(`api.md Transcription: word_timestamps that is ${what} stays so`, async () => {
        await post(formOf([...whisper, ...fields]))
        const parts = await received(only())
        expect(parts.filter(([name]) => name === 'word_timestamps')).to.deep.equal(fields)
      })

    it('a field name with quotes and line breaks cannot add a part or a header', async () => {
      const name = 'a"; filename="x\r\nX-Evil: 1\r\n\r\n'
      await post(formOf([...whisper, [name, 'v']]))
      const call = only()
      const parts = await received(call)
      expect(parts.map(([each]) => each)).to.deep.equal(['model', name, 'file'])
      expect(call.raw.toString('latin1')).not.to.match(/^X-Evil/m)
    })

    it('the file with its bytes, its name and its type, wherever in the form it stood', async () => {
      const bytes = randomBytes(300_000)
      const form = new FormData()
      form.append('file', new Blob([bytes], { type: 'audio/mpeg' }), 'Gespräch "1" 🎧.mp3')
      for (const [name, value] of whisper) form.append(name, value)
      expect((await post(form)).status).to.equal(200)
      const file = (await received(only())).find(([name]) => name === 'file')?.[1]
      if (!(file instanceof File)) throw new Error('no file')
      expect([file.name, file.type, file.size]).to.deep.equal(['Gespräch "1" 🎧.mp3', 'audio/mpeg', bytes.length])
      expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).to.equal(true)
    })

    it('an empty file', async () => {
      expect((await post(formOf(whisper, new Blob([])))).status).to.equal(200)
      const file = (await received(only())).find(([name]) => name === 'file')?.[1]
      expect(file).to.include({ name: 'a.wav', size: 0 })
    })

    it('D9.1: at <url>/audio/transcriptions, with a known length, the key and the extra headers', async () => {
      await post(formOf(whisper))
      const { url, method, headers, raw } = only()
      expect([method, url]).to.deep.equal(['POST', '/v1/audio/transcriptions'])
      expect(Number(headers['content-length'])).to.equal(raw.length)
      expect(headers).to.include({ authorization: `Bearer ${KEY}`, 'x-team': 'canary-header' })
      expect(headers).not.to.have.any.keys('transfer-encoding', 'expect', 'cookie')
    })

    it('the key of the secret that the instance names, and no key for an instance that has none', async () => {
      await post(formOf(to('with-secret')))
      await post(formOf(to('open')))
      expect(calls.map(({ headers }) => headers.authorization)).to.deep.equal([`Bearer ${SECRET}`, undefined])
    })

    it('nothing of the headers of the client', async () => {
      const headers = { authorization: 'Bearer of-the-client', cookie: 'a=b', 'x-forwarded-for': '1.2.3.4' }
      await fetch(gateway.url + PATH, { method: 'POST', body: formOf(whisper), headers })
      expect(only().headers)
        .to.include({ authorization: `Bearer ${KEY}` })
        .and.not.have.any.keys('cookie', 'x-forwarded-for')
    })
  })

  describe('what the client receives', () => {
    for (const [status, type, body] of [
      [200, 'text/vtt; charset=utf-8', 'WEBVTT\n\n00:00.000 --> 00:01.000\nhello ☺\n'],
      [201, 'application/json', '{"text":""}'],
      [400, 'application/json', '{"error":{"message":"no such model"}}'],
      [401, 'application/json', '{"error":"bad key"}'],
      [429, 'text/plain', 'slow down'],
      [500, 'text/html', '<h1>oh</h1>'],
      [503, 'application/problem+json', '{}'],
    ] as const)
      it(`D9.1: the backend’s ${status} with its type and body`, async () => {
        answer = (_req, res) => res.writeHead(status, { 'content-type': type, 'x-internal': 'no' }).end(body)
        const response = await post(formOf(whisper))
        expect([response.status, response.headers.get('content-type'), await response.text()]).to.deep.equal([
          status,
          type,
          body,
        ])
        expect(response.headers.has('x-internal')).to.equal(false)
        await nothingLeft()
      })

    it('a long answer, as fast as it is read', async () => {
      const text = 'x'.repeat(5_000_000)
      answer = (_req, res) => res.end(text)
      expect((await (await post(formOf(whisper))).text()).length).to.equal(text.length)
    })

    it('a broken connection when the backend breaks off in the middle of its answer, so that nobody takes it for whole', async () => {
      answer = (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/plain' }).write('half')
        setImmediate(() => res.destroy())
      }
      const outcome = await post(formOf(whisper))
        .then((response) => response.text())
        .catch(() => 'broken')
      expect(outcome).to.equal('broken')
      await nothingLeft()
    })

    it('api.md Transcription: 502 that names the instance and the reason, when the backend is offline', async () => {
      const response = await post(formOf(to('offline')))
      expect(response.status).to.equal(502)
      const { type, message } = await refusalOf(response)
      expect(type).to.equal('upstream_error')
      expect(message).to.include('offline').and.include('could not be reached')
      await nothingLeft()
    })

    it('502 when the backend closes the connection while the file is being sent', async () => {
      backend.removeAllListeners('request')
      backend.on('request', (req) => req.once('data', () => req.socket.destroy()))
      const response = await post(formOf(whisper, new Blob([Buffer.alloc(20_000_000)])))
      expect(response.status).to.equal(502)
      await nothingLeft()
    })

    it('502 when the backend does not answer within timeout_secs of the instance', async () => {
      answer = () => {}
      const response = await post(formOf(to('quick')))
      expect([response.status, (await refusalOf(response)).code]).to.deep.equal([502, 'egress_timeout'])
      await nothingLeft()
    })

    for (const status of [300, 301, 302, 303, 307, 308, 399])
      it(`502 when the backend redirects with ${status}, and nothing is sent to the other address`, async () => {
        answer = (_req, res) => res.writeHead(status, { location: `${backendUrl}/elsewhere` }).end()
        const response = await post(formOf(whisper))
        expect(response.status).to.equal(502)
        expect((await refusalOf(response)).message).to.include(`redirects the request (HTTP ${status})`)
        expect(only().url).to.equal('/v1/audio/transcriptions')
        await nothingLeft()
      })

    it('the early answer of a backend that does not read the file', async () => {
      backend.removeAllListeners('request')
      backend.on('request', (_req, res) => {
        res.writeHead(413, { 'content-type': 'text/plain', connection: 'close' }).end('too long')
      })
      const response = await post(formOf(whisper, new Blob([Buffer.alloc(30_000_000)])))
      expect(response.status).to.be.oneOf([413, 502])
      await nothingLeft()
    })
  })

  describe('what is refused before a backend is called', () => {
    const cases: [string, FormData | (() => FormData), number, string | undefined][] = [
      ['an unknown instance', formOf(to('nobody')), 400, '/provider_instance'],
      ['a type that several instances have', formOf(to('openai-compatible')), 400, '/provider_instance'],
      ['an anthropic instance', formOf(to('claude')), 400, '/provider_instance'],
      ['a google instance', formOf(to('gemini')), 400, '/provider_instance'],
      ['an ollama instance', formOf(to('llama')), 400, '/provider_instance'],
      ['an instance name like a property', formOf(to('__proto__')), 400, '/provider_instance'],
      ['no provider_instance', formOf([['model', 'm']]), 400, '/provider_instance'],
      ['no model', formOf([['provider_instance', 'whisper']]), 400, '/model'],
      ['an empty model', formOf(to('whisper', ' ')), 400, '/model'],
      ['two instances', formOf([...whisper, ['provider_instance', 'open']]), 400, '/provider_instance'],
      ['two models', formOf([...whisper, ['model', 'other']]), 400, '/model'],
      [
        'no file',
        () => {
          const form = new FormData()
          for (const [name, value] of whisper) form.append(name, value)
          return form
        },
        400,
        '/file',
      ],
      ['an instance whose secret is gone', formOf(to('secret-gone')), 503, undefined],
    ]
    for (const [what, form, status, param] of cases)
      it(`D9.1: ${what} is ${status}`, async () => {
        const response = await post(typeof form === 'function' ? form() : form)
        expect(response.status).to.equal(status)
        expect((await refusalOf(response)).param).to.equal(param)
        expect(calls).to.deep.equal([])
        await nothingLeft()
      })

    it('a file without a name, as a browser sends it when none was chosen, is 400', async () => {
      const response = await post(formOf(whisper, new Blob(['x']), ''))
      expect([response.status, (await refusalOf(response)).param]).to.deep.equal([400, '/file'])
      expect(calls).to.deep.equal([])
    })

    it('D9.1: a body that is not multipart is 415, and none at all too', async () => {
      expect((await gateway.post(PATH, { model: 'm' })).status).to.equal(415)
      expect((await gateway.post(PATH)).status).to.equal(415)
    })

    it('a type that only one instance has names that instance', async () => {
      expect((await post(formOf(to('openai')))).status).to.equal(200)
      expect(calls).to.have.lengthOf(1)
    })

    it('an instance of private address, where those are refused, is 400 egress_refused and calls nobody', async () => {
      const guarded = createEgress({ allowPrivate: false })
      gateway = await startGateway({ transcription: { ...depsOf(configOf()), egress: guarded } })
      const response = await post(formOf(whisper))
      expect([response.status, (await refusalOf(response)).code]).to.deep.equal([400, 'egress_refused'])
      expect(calls).to.deep.equal([])
      await nothingLeft()
      await guarded.close()
    })

    it('api.md Runtime configuration: without a master key it is 503', async () => {
      gateway = await startGateway({ transcription: undefined })
      const response = await post(formOf(whisper))
      expect([response.status, (await refusalOf(response)).code]).to.deep.equal([503, 'config_disabled'])
    })
  })

  it('D9.3: an upload keeps its place until its backend has answered', async () => {
    const receive = createReceiveUpload(dir.path, { maxUploads: 1, waitMs: 1 })
    const full = await startGateway({ transcription: { ...depsOf(configOf()), receive } })
    const send = () => fetch(full.url + PATH, { method: 'POST', body: formOf(whisper) })
    const asked = Promise.withResolvers<() => void>()
    answer = (_req, res) => asked.resolve(() => res.end('first'))
    const first = send()
    const finish = await asked.promise
    const refused = await send()
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '10'])
    await refused.text()
    finish()
    expect(await (await first).text()).to.equal('first')
    answer = (_req, res) => res.end('again')
    await until(async () => (await (await send()).text()) === 'again', { what: 'the place to be free again' })
    await nothingLeft()
  })

  describe('a client that leaves', () => {
    it('D9.2: while the backend works: the connection to the backend closes, and nothing stays on the disk', async () => {
      const asked = Promise.withResolvers<void>()
      answer = () => asked.resolve()
      const leaving = new AbortController()
      const posted = post(formOf(whisper), leaving.signal).catch(() => 'left')
      await asked.promise
      expect(await readdir(dir.path)).to.have.lengthOf(1)
      leaving.abort()
      expect(await posted).to.equal('left')
      await only().closed
      await nothingLeft()
    })

    it('while the backend’s answer is passed on', async () => {
      answer = (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/plain' }).write('first')
      }
      const leaving = new AbortController()
      const response = await post(formOf(whisper), leaving.signal)
      leaving.abort()
      await response.text().catch(() => {})
      await only().closed
      await nothingLeft()
    })

    it('before the form is complete: the backend is not called', async () => {
      const socket = connect(gateway.port, '127.0.0.1')
      sockets.push(socket)
      const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxxxx'
      socket.write(
        `POST /v1${PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 9999\r\n\r\n${head}`,
      )
      await until(async () => (await readdir(dir.path)).length === 1, { what: 'the upload to begin' })
      socket.destroy()
      await nothingLeft()
      expect(calls).to.deep.equal([])
    })
  })
})
