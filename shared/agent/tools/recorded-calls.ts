import { hash } from 'node:crypto'
import { hasKind } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { BatchAnswer } from '../providers/batch/port.ts'
import { fail, type Tool, type ToolBox, type ToolContext, type ToolOutcome } from './port.ts'

/** Stores the tool calls of an execution that waits between its turns (D55.6b). Both methods throw `unavailable`. */
export type CallKeeper = {
  /** Notes that a call is about to run. `lost`: a process that died had begun it. `elsewhere`: another process is running it. */
  begin(id: string): Promise<'begun' | 'lost' | 'elsewhere'>
  end(id: string, outcome: ToolOutcome): Promise<void>
}

type Settings = {
  traceId: string
  /** The stored data of the execution: `ID` is the result of a call, `ID-begun` notes that it has begun. */
  kept: ReadonlyMap<string, BatchAnswer>
  /** Set when the execution is only tried, to collect its next model calls. */
  keeper?: CallKeeper | undefined
  /** Throws when this process may not act. */
  assertMayAct(): void
  /** Called when a tool has thrown, which is a bug of the tool. */
  onToolBug(toolName: string, cause: unknown): void
}

/** A longer result is not kept. */
const MOST_CHARS = 4 * 1024 * 1024

/**
 * The tools of an execution that waits between its turns: a stored call returns its stored result, so that it runs once, however often the turns are
 * repeated. In a trial a new call runs and is stored; it runs to its end even if the trial has stopped.
 */
export class RecordedCalls {
  /** The number of calls that this trial has made. */
  made = 0
  /** Set when another process is running a call: the result of this trial is void. */
  isElsewhere = false
  readonly #settings: Settings
  readonly #open = new Set<Promise<unknown>>()
  #failure: unknown

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** The tools of one agent. */
  of(agent: string, toolBox: ToolBox): ToolBox {
    const counts = new Map<string, number>()
    const idOf = (name: string, input: JsonObject) => {
      const called = hash('sha256', JSON.stringify([agent, name, input])).slice(0, 24)
      const count = counts.get(called) ?? 0
      counts.set(called, count + 1)
      return `tool-${this.#settings.traceId.slice('trace_'.length)}-${called}-${count}`
    }
    return {
      get tools() {
        return toolBox.tools
      },
      ready: toolBox.ready,
      servers: () => toolBox.servers?.() ?? [],
      find: (name) => {
        const tool = toolBox.find(name)
        return tool && { ...tool, run: (input, context) => this.#run(tool, { id: idOf(name, input), input, context }) }
      },
      policyOf: (...call) => toolBox.policyOf(...call),
      problemWith: (name, input) => toolBox.problemWith(name, input),
    }
  }

  /** Resolves when each call has ended and is stored. Rejects when one could not be stored. */
  async settled(): Promise<void> {
    await Promise.all(this.#open)
    if (this.#failure !== undefined) throw this.#failure
  }

  async #run(tool: Tool, call: Call): Promise<ToolOutcome> {
    const { kept, keeper } = this.#settings
    const known = kept.get(call.id)
    if (known) return known.body as ToolOutcome
    if (keeper) return this.#keep(tool, call, keeper)
    return kept.has(begunOf(call.id)) ? interrupted(tool) : tool.run(call.input, call.context)
  }

  #keep(tool: Tool, call: Call, keeper: CallKeeper): Promise<ToolOutcome> {
    this.made++
    const making = this.#make(tool, call, keeper).catch((cause: unknown) => {
      this.#failure ??= cause
      return fail('The call could not be kept.') // The text is never read: the trial is void.
    })
    this.#open.add(making)
    return making
  }

  async #make(tool: Tool, { id, input, context }: Call, keeper: CallKeeper): Promise<ToolOutcome> {
    const { assertMayAct } = this.#settings
    assertMayAct()
    const begun = tool.isReadOnly || tool.isIdempotent ? 'begun' : await keeper.begin(id)
    if (begun === 'elsewhere') {
      this.isElsewhere = true
      return fail('Another process makes the call.')
    }
    const own = { ...context, signal: NEVER, assertMayAct }
    const outcome = begun === 'lost' ? interrupted(tool) : await this.#try(tool, input, own)
    const { ending: _ending, ...result } = outcome
    const whole = JSON.stringify(result).length > MOST_CHARS ? fail(`The result of ${tool.name} is too long.`) : result
    await keeper.end(id, whole)
    return whole
  }

  async #try(tool: Tool, input: JsonObject, context: ToolContext): Promise<ToolOutcome> {
    try {
      return await tool.run(input, context)
    } catch (cause) {
      if (hasKind(cause, 'unavailable')) return fail(`The call was not made: ${cause.message}`)
      this.#settings.onToolBug(tool.name, cause)
      return fail(`${tool.name} failed unexpectedly. Try another way.`)
    }
  }
}

type Call = { id: string; input: JsonObject; context: ToolContext }

export const begunOf = (id: string): string => `${id}-begun`

const NEVER = new AbortController().signal

const interrupted = ({ name }: Tool): ToolOutcome =>
  fail(
    `${name} was interrupted by a failure of this server. It may have run, completely or in part. Find out what it has done before you call it again.`,
  )

/** The tools that start agents; the agents' model calls belong to the tool call. */
const AGENT_TOOLS: ReadonlySet<string> = new Set(['Agent', 'Team'])

/** Whether the calls of a tool may be hours apart and in different processes: it uses no folder and starts no agents. */
export const mayWait = ({ name, usesFiles = false }: Tool): boolean => !usesFiles && !AGENT_TOOLS.has(name)
