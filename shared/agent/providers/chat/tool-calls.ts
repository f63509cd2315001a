import { randomUUID } from 'node:crypto'
import { isJsonObject } from '../../../kernel/json.ts'
import { CallInput, isJson, isSameCall } from '../call-input.ts'
import type { ModelPart } from '../port.ts'
import { NAMESPACE } from './conversation.ts'

/** A piece of a tool call. The first piece names the tool; each other field is missing with some servers. */
type Piece = {
  index?: unknown
  id?: unknown
  function?: { name?: unknown; arguments?: unknown } | null
  extra_content?: { google?: { thought_signature?: unknown } | null } | null
}

type Call = { index: number | undefined; id: string; toolName: string; input: CallInput; signature: string | undefined }

/** Assembles tool calls from their pieces. They are complete only at the end of the answer. */
export class ToolCalls {
  readonly #origin: string
  readonly #calls: Call[] = []
  /** The latest call of each index: some servers give all calls the same index. */
  readonly #byIndex = new Map<number | undefined, Call>()
  readonly #byId = new Map<string, Call>()

  /** `origin` is the server's host. Only that server gets its signatures back. */
  constructor(origin: string) {
    this.#origin = origin
  }

  /** Whether every call names its tool and has JSON as its input. */
  get areComplete(): boolean {
    return this.#merged().every(({ toolName, input }) => toolName !== '' && isJson(input))
  }

  add(value: unknown): void {
    const piece = Object(value) as Piece
    const index = typeof piece.index === 'number' ? piece.index : undefined
    const id = nonBlank(piece.id)
    const name = nonBlank(piece.function?.name)
    const input = inputOf(piece)
    // A piece without index and id continues the last call.
    const latest = id === '' ? this.#calls.at(-1) : this.#byId.get(id)
    const open = index === undefined ? latest : this.#byIndex.get(index)
    const call = open && continues(open, { id, name, input }) ? open : this.#start(index)
    call.id ||= id
    call.toolName ||= name
    call.input.add(input)
    call.signature ??= nonBlank(piece.extra_content?.google?.thought_signature) || undefined
    this.#byId.set(id, call)
  }

  /** Returns the calls in order; `undefined` when one of them names no tool. */
  end(): ModelPart[] | undefined {
    const calls = this.#merged().filter(({ toolName, input }) => toolName !== '' || input !== '')
    if (calls.some(({ toolName }) => toolName === '')) return undefined
    if (calls.every(({ index }) => index !== undefined)) calls.sort((a, b) => Number(a.index) - Number(b.index))
    const ids = new Set<string>()
    return calls.map((call) => {
      const id = call.id === '' || ids.has(call.id) ? `call_${randomUUID().replaceAll('-', '')}` : call.id
      ids.add(id)
      return toPart(call, id, this.#origin)
    })
  }

  #merged(): WholeCall[] {
    return mergeEqual(this.#calls.map((call) => ({ ...call, input: call.input.text })))
  }

  #start(index: number | undefined): Call {
    const call = { index, id: '', toolName: '', input: new CallInput(), signature: undefined }
    this.#calls.push(call)
    this.#byIndex.set(index, call)
    return call
  }
}

/**
 * Decides whether a piece continues `call`. Some servers repeat the name and the id in each piece, and some give several calls
 * the same index, so neither is enough: a piece starts another call when its name differs, or when its id or the start of its
 * input indicates a new call and the input so far is complete. A piece with the call's own index and id never does.
 */
function continues(call: Call, { id, name, input }: { id: string; name: string; input: string }): boolean {
  if (name === '' || call.toolName === '') return true
  if (name !== call.toolName) return false
  if (id !== '' && id === call.id && call.index !== undefined) return true
  const isOtherId = id !== '' && call.id !== '' && id !== call.id
  const startsInput = /^\s*[{[]/.test(input)
  if (isOtherId && startsInput) return false
  return !call.input.beginsAnew(isOtherId ? '{' : input)
}

type WholeCall = Omit<Call, 'input'> & { input: string }

function mergeEqual(calls: readonly WholeCall[]): WholeCall[] {
  const merged: WholeCall[] = []
  for (const call of calls) {
    const at = merged.findIndex((earlier) => isSameCall(earlier, call))
    const earlier = merged[at]
    if (earlier) merged[at] = mergeTwo(earlier, call)
    else merged.push(call)
  }
  return merged
}

function mergeTwo(one: WholeCall, other: WholeCall): WholeCall {
  const whole = [one, other].find(({ input }) => isJson(input))
  const input = whole?.input ?? one.input + other.input
  return { ...one, toolName: one.toolName || other.toolName, input, signature: one.signature ?? other.signature }
}

const nonBlank = (value: unknown): string => (typeof value === 'string' && value.trim() !== '' ? value : '')

/** Some servers send the arguments as an object instead of its JSON text. */
function inputOf({ function: called }: Piece): string {
  const input = called?.arguments
  if (typeof input === 'string') return input
  return isJsonObject(input) ? JSON.stringify(input) : ''
}

function toPart({ toolName, input, signature }: WholeCall, id: string, origin: string): ModelPart {
  const meta = signature !== undefined && { meta: { [NAMESPACE]: { origin, thought_signature: signature } } }
  return { type: 'tool_call', id, toolName, input, ...meta }
}
