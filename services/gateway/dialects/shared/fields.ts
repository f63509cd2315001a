import { type AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { escapePointer, isJsonObject } from '../../../../shared/kernel/json.ts'

/** Reads the fields of a request in a foreign format, in which null means that a field is not set, and refuses the wrong ones by their pointer. */
export class Fields {
  readonly value: JsonObject
  readonly at: string
  readonly #read = new Set<string>()

  constructor(value: JsonObject, at = '') {
    this.value = value
    this.at = at
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** Any value; `undefined` for one that is not set. */
  get(name: string): unknown {
    this.#read.add(name)
    return this.value[name] ?? undefined
  }

  /** The pointers of the fields that are set but were never read. */
  get unread(): string[] {
    return Object.entries(this.value)
      .filter(([name, value]) => !this.#read.has(name) && !isEmpty(value))
      .map(([name]) => `${this.at}/${escapePointer(name)}`)
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.#refuse(name, 'a string')
  }

  optionalText(name: string): string | undefined {
    const value = this.get(name)
    if (value === undefined || typeof value === 'string') return value
    return this.#refuse(name, 'a string')
  }

  optionalFlag(name: string): boolean | undefined {
    const value = this.get(name)
    if (value === undefined || typeof value === 'boolean') return value
    return this.#refuse(name, 'true or false')
  }

  object(name: string): Fields {
    const value = this.get(name)
    return isJsonObject(value) ? new Fields(value, `${this.at}/${name}`) : this.#refuse(name, 'a JSON object')
  }

  /** The objects of a list; none when it is not set. */
  objects(name: string): Fields[] {
    const value = this.get(name) ?? []
    if (!Array.isArray(value)) return this.#refuse(name, 'a list')
    return value.map((each: unknown, i) => {
      if (isJsonObject(each)) return new Fields(each, `${this.at}/${name}/${i}`)
      return this.#refuse(`${name}/${i}`, 'a JSON object')
    })
  }

  /** The error of a field with a wrong value; `wanted` completes the sentence "… must be". */
  wrong(name: string, wanted: string): AppError {
    const param = `${this.at}/${name}`
    return invalidRequest(`${nameOf(param)} must be ${wanted}`, { param })
  }

  #refuse(name: string, wanted: string): never {
    throw this.wrong(name, wanted)
  }
}

/** Clients send fields that they do not use with empty values. */
const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)

/** Turns `/messages/3/role` into `messages[3].role`. */
const nameOf = (pointer: string): string =>
  pointer
    .slice(1)
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')
