import { isObject, listOf, objectOf, type Path, pointerOf } from '../../../base/json-value.ts'
import type { Spec } from './input-spec.ts'

/** The texts of all fields, in lists and objects like those of the value. */
export type Raw = string | readonly Raw[] | { readonly [name: string]: Raw }

export type InputProblem = { pointer: string; message: string }

/** The fields for a value; empty fields if there is none. */
export function rawOf(spec: Spec, value?: unknown): Raw {
  if (spec.kind === 'object') {
    const values = objectOf(value)
    return Object.fromEntries(
      spec.fields.map((field) => [field.name, rawOf(field.spec, ownOf(values, field.name))] as const),
    )
  }
  if (spec.kind === 'list') return listOf(value).map((item) => rawOf(spec.item, item))
  if (value === undefined) return ''
  if (spec.kind === 'text') return typeof value === 'string' ? value : ''
  return JSON.stringify(value, null, spec.kind === 'json' ? 2 : undefined)
}

const ownOf = (values: Readonly<Record<string, unknown>>, name: string) =>
  Object.hasOwn(values, name) ? values[name] : undefined

/**
 * The value of the fields, and the problems of each field. The server checks the whole schema; this checks only what
 * the fields can check at once.
 */
export function readInput(spec: Spec, raw: Raw): { value: unknown; problems: readonly InputProblem[] } {
  const problems: InputProblem[] = []
  const value = read(spec, raw, { path: [], isRequired: true, problems })
  return { value: value ?? {}, problems }
}

type Reading = { path: Path; isRequired: boolean; problems: InputProblem[] }

/** `undefined` for a value that is not given. */
function read(spec: Spec, raw: Raw, reading: Reading): unknown {
  const { path, isRequired, problems } = reading
  const refuse = (message: string) => {
    problems.push({ pointer: pointerOf(path), message })
    return undefined
  }
  if (spec.kind === 'object') return readObject(spec, raw, reading)
  if (spec.kind === 'list') return readList(spec, raw, reading)
  const text = typeof raw === 'string' ? raw : ''
  if (text.trim() === '') return isRequired ? refuse('This is needed.') : undefined
  if (spec.kind === 'text') return withinLength(text, spec.schema, refuse)
  if (spec.kind === 'number' || spec.kind === 'integer') return readNumber(spec, text, refuse)
  try {
    return JSON.parse(text) as unknown
  } catch {
    return refuse('This is no JSON: texts need quotes.')
  }
}

type Refuse = (message: string) => undefined

function readObject(spec: Spec & { kind: 'object' }, raw: Raw, { path, isRequired, problems }: Reading): unknown {
  const fields = isObject(raw) ? (raw as Readonly<Record<string, Raw>>) : {}
  // An optional object with only empty fields is left out, so its required fields are then not a problem.
  if (!isRequired && isEmpty(raw)) return undefined
  const entries = spec.fields.flatMap(({ name, isRequired: isNeeded, spec: field }) => {
    const value = read(field, fields[name] ?? '', { path: [...path, name], isRequired: isNeeded, problems })
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(entries)
}

const isEmpty = (raw: Raw): boolean => (typeof raw === 'string' ? raw.trim() === '' : Object.values(raw).every(isEmpty))

function readList(spec: Spec & { kind: 'list' }, raw: Raw, { path, isRequired, problems }: Reading): unknown {
  const items = Array.isArray(raw) ? (raw as readonly Raw[]) : []
  if (items.length === 0 && !isRequired) return undefined
  const least = numberOf(spec.schema['minItems'])
  if (least !== undefined && items.length < least)
    problems.push({ pointer: pointerOf(path), message: `At least ${least} are needed.` })
  return items.map((item, i) => read(spec.item, item, { path: [...path, i], isRequired: true, problems }))
}

function readNumber({ kind, schema }: Spec, text: string, refuse: Refuse): number | undefined {
  const value = Number(text)
  if (!Number.isFinite(value)) return refuse('This is no number.')
  if (kind === 'integer' && !Number.isInteger(value)) return refuse('This is no whole number.')
  const [least, most] = [numberOf(schema['minimum']), numberOf(schema['maximum'])]
  if (least !== undefined && value < least) return refuse(`At least ${least}.`)
  if (most !== undefined && value > most) return refuse(`At most ${most}.`)
  return value
}

function withinLength(text: string, schema: Spec['schema'], refuse: Refuse): string | undefined {
  const length = Array.from(text).length
  const [least, most] = [numberOf(schema['minLength']), numberOf(schema['maxLength'])]
  if (least !== undefined && length < least) return refuse(`At least ${least} characters.`)
  if (most !== undefined && length > most) return refuse(`At most ${most} characters.`)
  return text
}

const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined)
