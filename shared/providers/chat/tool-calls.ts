import { randomUUID } from 'node:crypto'
import type { ModelPart } from '../port.ts'
import { NAMESPACE } from './request.ts'

/** A piece of a tool call. The first one names the tool; servers leave out everything else now and then. */
type Piece = {
  index?: unknown
  id?: unknown
  function?: { name?: unknown; arguments?: unknown } | null
  extra_content?: { google?: { thought_signature?: unknown } | null } | null
}

type Call = { index: number | undefined; id: string; name: string; input: string; signature: string | undefined }

/** Puts tool calls together from their pieces. They are whole at the end of the answer, not before. */
export class ToolCalls {
  readonly #calls: Call[] = []
  /** The call that each index stands for: the last one, where a server gives the same index to all. */
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()

  get isEmpty(): boolean {
    return this.#calls.length === 0
  }

  add(value: unknown): void {
    const piece = Object(value) as Piece
    const index = typeof piece.index === 'number' ? piece.index : undefined
    const id = textOf(piece.id)
    const name = textOf(piece.function?.name)
    const input = typeof piece.function?.arguments === 'string' ? piece.function.arguments : ''
    const open = index === undefined ? (this.#byId.get(id) ?? this.#nameless(id, name)) : this.#byIndex.get(index)
    const call = open && isSame(open, { id, name, input }) ? open : this.#start(index)
    call.id ||= id
    call.name ||= name
    call.input += input
    call.signature ??= textOf(piece.extra_content?.google?.thought_signature) || undefined
    if (id !== '') this.#byId.set(id, call)
  }

  /** The calls in their order; `undefined` when one of them names no tool. */
  end(): ModelPart[] | undefined {
    const calls = this.#calls.filter(({ name, input }) => name !== '' || input !== '')
    if (calls.some(({ name }) => name === '')) return undefined
    if (calls.every(({ index }) => index !== undefined)) calls.sort((a, b) => Number(a.index) - Number(b.index))
    const ids = new Set<string>()
    return calls.map((call) => {
      const id = call.id === '' || ids.has(call.id) ? `call_${randomUUID().replaceAll('-', '')}` : call.id
      ids.add(id)
      return toPart(call, id)
    })
  }

  /** Without an index and a known id, what names no tool goes on with the last call. */
  #nameless(id: string, name: string): Call | undefined {
    return id === '' && name === '' ? this.#calls.at(-1) : undefined
  }

  #start(index: number | undefined): Call {
    const call = { index, id: '', name: '', input: '', signature: undefined }
    this.#calls.push(call)
    if (index !== undefined) this.#byIndex.set(index, call)
    return call
  }
}

/** Some servers repeat a call's name and id with each piece, and some give one index to several calls: what differs tells. */
function isSame(call: Call, { id, name, input }: { id: string; name: string; input: string }): boolean {
  if (name === '' || call.name === '') return true
  if (name !== call.name) return false
  const isOtherId = id !== '' && call.id !== '' && id !== call.id
  const startsAnew = /^\s*[{[]/.test(input)
  if (isOtherId && startsAnew) return false
  return !((isOtherId || startsAnew) && isWhole(call.input))
}

/** Of longer inputs it is not worth the time to find out with each piece. */
const MAX_WHOLE_CHARS = 64 * 1024

function isWhole(input: string): boolean {
  if (input.length > MAX_WHOLE_CHARS || !(input.endsWith('}') || input.endsWith(']'))) return false
  try {
    JSON.parse(input)
    return true
  } catch {
    return false
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' && value.trim() !== '' ? value : '')

function toPart({ name, input, signature }: Call, id: string): ModelPart {
  const meta = signature !== undefined && { meta: { [NAMESPACE]: { thought_signature: signature } } }
  return { type: 'tool_call', id, toolName: name, input, ...meta }
}
