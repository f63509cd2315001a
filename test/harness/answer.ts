/** One HTTP/1.1 response as it was received. */
export type Answer = {
  status: number
  /** By lower-case name. A repeated header has its last value. */
  headers: ReadonlyMap<string, string>
  body: Buffer
  /** `false` when the connection ended, or the wait timed out, before the end of the body. */
  isWhole: boolean
  /** The request was HEAD, so no body follows. */
  isHead: boolean
  /** The number of bytes that the response occupies on the connection. */
  size: number
}

const HEAD_END = '\r\n\r\n'

/** Parses the first final response in `bytes`: `undefined` until its headers are complete. Throws when `bytes` is not HTTP. */
export function readAnswer(bytes: Buffer, isHead = false): Answer | undefined {
  const end = bytes.indexOf(HEAD_END)
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  if (!status) throw new Error(`not an HTTP response: ${JSON.stringify(first.slice(0, 80))}`)
  const bodyAt = end + HEAD_END.length
  if (status < 200) return shifted(readAnswer(bytes.subarray(bodyAt), isHead), bodyAt)
  const headers = new Map(lines.map(splitHeader))
  const rest = bytes.subarray(bodyAt)
  const body = isHead || status === 204 || status === 304 ? NOTHING : readBody(rest, headers)
  return { status, headers, body: body.bytes, isWhole: body.isWhole, isHead, size: bodyAt + body.size }
}

const shifted = (answer: Answer | undefined, by: number) => answer && { ...answer, size: answer.size + by }

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

type Body = { bytes: Buffer; isWhole: boolean; size: number }

const NOTHING: Body = { bytes: Buffer.alloc(0), isWhole: true, size: 0 }

function readBody(rest: Buffer, headers: ReadonlyMap<string, string>): Body {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(rest)
  const length = Number(headers.get('content-length') ?? Number.NaN)
  if (Number.isNaN(length)) return { bytes: rest, isWhole: false, size: rest.length } // The body ends with the connection.
  const bytes = rest.subarray(0, length)
  return { bytes, isWhole: bytes.length === length, size: bytes.length }
}

function readChunks(rest: Buffer): Body {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(rest.toString('latin1', at, lineEnd), 16)
    const from = lineEnd + 2
    const isCut = Number.isNaN(size) || from + size + 2 > rest.length
    if (isCut) return { bytes: Buffer.concat(chunks), isWhole: false, size: rest.length }
    at = from + size + 2
    if (size === 0) return { bytes: Buffer.concat(chunks), isWhole: true, size: at }
    chunks.push(rest.subarray(from, from + size))
  }
}
