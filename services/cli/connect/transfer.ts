import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { ApiError, ConnectionFailed } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { usageError } from '../exit-codes.ts'
import { plainLine } from '../text/plain.ts'
import { SentMeter } from '../text/sent-meter.ts'
import { accessTo } from './connect.ts'

type Where = Pick<Cli, 'io' | 'target'>

export type Field = readonly [name: string, value: string]

/** `form`: the other fields of a form that sends the file as its field `file`. Without `form`, the bytes of the file are the whole body. */
type FileToSend = { path: string; file: string; form?: readonly Field[]; signal: AbortSignal }

/**
 * Sends a file while reading it from the disk, only as fast as the server accepts it, so that the whole file is never in memory. A terminal shows the
 * progress. `fetch` is not used, because it reads a form as fast as it can. Resolves with the text of a successful answer, and throws the same errors
 * as the client.
 */
export async function sendFile(
  { path, file, form, signal }: FileToSend,
  where: Where & Pick<Cli, 'output'>,
): Promise<string> {
  const from = resolve(where.io.cwd, file)
  const found = await stat(from)
  if (!found.isFile()) throw usageError(`${plainLine(file)} is no file`)
  const meter = new SentMeter(plainLine(basename(from)), found.size, where.output)
  const { type, before, behind } = form ? partOf(form, basename(from)) : BYTES
  const headers = { 'content-type': type, 'content-length': String(before.length + found.size + behind.length) }
  const body = async function* () {
    yield before
    let sent = 0
    for await (const bytes of createReadStream(from) as AsyncIterable<Buffer>) {
      yield bytes
      sent += bytes.length
      meter.note(sent)
    }
    yield behind
  }
  try {
    const init = () => ({ ...SENT_ONCE, headers, body: body(), signal })
    const response = await send(path, init, where)
    return await response.text().catch((cause: unknown) => broken(cause, signal))
  } finally {
    meter.close()
  }
}

const NOTHING = Buffer.alloc(0)
const BYTES = { type: 'application/octet-stream', before: NOTHING, behind: NOTHING }

/** A body goes to the server that it was read for, and to no other. */
const SENT_ONCE = { method: 'POST', duplex: 'half', redirect: 'error' } as const

/** The parts of a form's body before and after the bytes of its field `file` (RFC 7578). */
function partOf(fields: readonly Field[], fileName: string): typeof BYTES {
  const boundary = `ae-${crypto.randomUUID()}`
  const part = (disposition: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`
  const others = fields.map(([name, value]) => `${part(`name="${quoted(name)}"`)}\r\n${value}\r\n`)
  const own = `${part(`name="file"; filename="${quoted(fileName)}"`)}Content-Type: application/octet-stream\r\n\r\n`
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    before: Buffer.from(others.join('') + own),
    behind: Buffer.from(`\r\n--${boundary}--\r\n`),
  }
}

const quoted = (name: string): string => name.replace(/[\r\n"]/g, encodeURIComponent)

/** The bytes of a good answer. */
export async function getBody(path: string, signal: AbortSignal, where: Where): Promise<Response['body']> {
  return (await send(path, () => ({ signal }), where)).body
}

type Init = Omit<RequestInit, 'headers'> & { signal: AbortSignal; headers?: Record<string, string> }

/** A token that is refused is asked for again, once. */
async function send(path: string, init: () => Init, { io, target }: Where): Promise<Response> {
  const { url, token } = accessTo(io, await target())
  const sendWith = (bearer: string | undefined) => {
    const { headers, ...rest } = init()
    const own = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    return fetch(url.replace(/\/+$/, '') + path, { ...rest, headers: { ...headers, ...own } }).catch((cause: unknown) =>
      broken(cause, rest.signal),
    )
  }
  const first = typeof token === 'function' ? await token() : token
  let response = await sendWith(first)
  if (response.status === 401 && typeof token === 'function') {
    await response.body?.cancel()
    response = await sendWith(await token(first))
  }
  if (response.ok) return response
  throw new ApiError(response, await response.text())
}

function broken(cause: unknown, { aborted }: AbortSignal): never {
  throw aborted ? cause : new ConnectionFailed('the connection failed', { cause })
}
