import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { isObject, type JsonObject, type Path, withValue } from '../../../base/json-value.ts'
import { printJson } from '../../../base/long-text.ts'
import { ofTab } from '../../../base/tab.ts'

type Flow = { name: string; definition: unknown; version: number }

/** A definition while it is edited: the form and the JSON are two views of its text. */
export class FlowDocument {
  readonly text: Signal<string> = signal('')
  /** The version that it was made from. */
  readonly version: Signal<number> = signal(0)
  readonly isChanged: ReadonlySignal<boolean> = computed(
    () => this.text.value !== this.#saved.value && canonical(this.text.value) !== this.#savedValue.value,
  )
  /** `undefined` while the text is no JSON object. */
  readonly value: ReadonlySignal<JsonObject | undefined> = computed(() => parse(this.text.value))
  readonly #saved = signal('')
  readonly #savedValue = computed(() => canonical(this.#saved.value))

  constructor(flow: Flow) {
    this.take(flow)
  }

  /** Replaces the edited text by the stored definition. */
  take(flow: Flow): void {
    this.text.value = printJson(flow.definition)
    this.keep(flow)
  }

  /** The text was stored as this version. What was written meanwhile stays. */
  keep({ definition, version }: Flow): void {
    this.version.value = version
    this.#saved.value = printJson(definition)
  }

  /** Changes one value for the form. `undefined` removes it. */
  change(path: Path, next: unknown): void {
    if (this.value.peek()) this.text.value = printJson(withValue(this.value.peek(), path, next))
  }
}

const open = ofTab(() => new Map<string, FlowDocument>())

/** The document of a flow. It stays while the tab is open, so that opening another view loses no edits. */
export function documentOf(flow: Flow): FlowDocument {
  const known = open().get(flow.name) ?? new FlowDocument(flow)
  open().set(flow.name, known)
  return known
}

/** Drops the edited text of a deleted flow. */
export const closeDocument = (name: string): void => void open().delete(name)

/** The same text for the same JSON: the server keeps values, and orders their keys as it likes. Returns a text that is not JSON as it is. */
function canonical(text: string): string {
  try {
    return JSON.stringify(ordered(JSON.parse(text)))
  } catch {
    return text
  }
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isObject(value)) return value
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, ordered(each)]))
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
