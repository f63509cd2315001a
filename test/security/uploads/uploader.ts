import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export type UploadSpec = {
  url: string
  instance: string
  bytes: number
  /** Aborts the request when this many bytes of the body are sent. */
  leavesAt?: number
  /** Sends no Content-Length. */
  isChunked?: boolean
  /** Waits this long after each chunk. */
  pauseMs?: number
  /** Sends this many bytes without a pause before. `onPause` is called when the server has taken nearly all of them. */
  pausesFrom?: number
  onPause?: () => void
  headers?: Readonly<Record<string, string>>
  signal?: AbortSignal
  /** At most 128 KiB. */
  chunkBytes?: number
}

/** How an upload ended. Status 0: the client left, or the connection was closed without an answer. */
export type Uploaded = { status: number; text: string; leftAt: number | undefined }

const BOUNDARY = 'security-upload'
const CHUNK = Buffer.alloc(128 * 1024, 0x5a)

const part = (name: string, value: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

/** Sends a transcription whose file is made up while it is sent, so that many large uploads need no memory here. */
export async function upload(spec: UploadSpec): Promise<Uploaded> {
  const { head, tail } = edgesOf(spec.instance)
  const length = head.length + spec.bytes + tail.length
  const req = request(`${spec.url}/audio/transcriptions`, {
    method: 'POST',
    agent: false,
    ...(spec.signal && { signal: spec.signal }),
    headers: {
      ...spec.headers,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      ...(!spec.isChunked && { 'content-length': length }),
    },
  })
  const answered = Promise.withResolvers<IncomingMessage | undefined>()
  req.once('response', answered.resolve)
  req.on('error', () => answered.resolve(undefined))
  req.once('close', () => answered.resolve(undefined))

  let leftAt: number | undefined
  const leave = () => {
    leftAt = performance.now()
    req.destroy()
  }
  const { leavesAt = Number.POSITIVE_INFINITY } = spec
  if (leavesAt >= length) req.once('finish', () => spec.leavesAt !== undefined && leave())
  const body = Readable.from(bodyOf({ head, tail, spec, leave }), { objectMode: false })
  body.on('error', () => {}).pipe(req)
  req.once('close', () => body.destroy())

  const response = await answered.promise
  body.unpipe(req)
  const text = response ? await textOf(response) : ''
  req.destroy()
  return { status: leftAt === undefined ? (response?.statusCode ?? 0) : 0, text, leftAt }
}

const edgesOf = (instance: string) => ({
  head: Buffer.from(
    `${part('provider_instance', instance)}${part('model', 'm')}--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
  ),
  tail: Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
})

type Body = { head: Buffer; tail: Buffer; spec: UploadSpec; leave(): void }

async function* bodyOf({ head, tail, spec, leave }: Body): AsyncGenerator<Buffer> {
  const { bytes, chunkBytes = 64 * 1024, pauseMs = 0, pausesFrom = 0, leavesAt = Number.POSITIVE_INFINITY } = spec
  yield head
  for (let sent = 0; sent < bytes; sent += chunkBytes) {
    if (sent >= leavesAt) return leave()
    yield CHUNK.subarray(0, Math.min(bytes - sent, chunkBytes, leavesAt - sent))
    if (pauseMs === 0 || sent < pausesFrom) continue
    spec.onPause?.()
    await sleep(pauseMs)
  }
  if (bytes >= leavesAt) return leave()
  yield tail
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
  } catch {
    // The server closed the connection after its answer.
  }
  return Buffer.concat(chunks).toString()
}
