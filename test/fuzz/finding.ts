/** The rules that the answers to a request broke, and the request's bytes for replay. */
export type Finding = { name: string; problems: readonly string[]; bytes: Buffer }

const MAX_SHOWN = 600

/** Renders the problems and, for short requests, a command line that sends the same bytes again. */
export function renderFinding({ name, problems, bytes }: Finding, port: number): string {
  return `${name}: ${problems.join('; ')}\n    ${reproduction(bytes, port)}`
}

function reproduction(bytes: Buffer, port: number): string {
  const text = JSON.stringify(bytes.toString('latin1', 0, MAX_SHOWN)).slice(1, -1)
  if (bytes.length > MAX_SHOWN) return `${text}… (${bytes.length} bytes)`
  const printed = [...bytes].map((byte) => (isPlain(byte) ? String.fromCharCode(byte) : octal(byte))).join('')
  return `printf '${printed}' | nc 127.0.0.1 ${port}`
}

/** Printable and without a special meaning in a quoted printf format. */
const isPlain = (byte: number) => byte >= 0x20 && byte < 0x7f && !"'\\%".includes(String.fromCharCode(byte))

const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`
