import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { usageError } from './exit-codes.ts'
import type { Io } from './io.ts'

type Document = Record<string, unknown>

/** The text of a file; `-` is stdin. */
export const readText = async (file: string, { stdin, cwd }: Io): Promise<string> =>
  file === '-' ? textOf(stdin) : readFile(resolve(cwd, file), 'utf8')

/** An object from a file of JSON or YAML; `-` is stdin. */
export const readDocument = async (file: string, io: Io): Promise<Document> =>
  parseDocument(await readText(file, io), file)

/** An object from JSON, or with `@` before it from a file. */
export async function readInput(text: string, io: Io): Promise<Document> {
  return text.startsWith('@') ? readDocument(text.slice(1), io) : parseDocument(text, 'the input')
}

/** JSON is also valid YAML, but the JSON parser gives better error messages. */
export async function parseDocument(text: string, name: string): Promise<Document> {
  const value = await parse(text, name)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Document
  throw usageError(`${name} holds no object`)
}

async function parse(text: string, name: string): Promise<unknown> {
  try {
    if (/^\s*[{[]/.test(text)) return JSON.parse(text)
    const { parse: parseYaml } = await import('yaml')
    return parseYaml(text, { maxAliasCount: 100, logLevel: 'error' })
  } catch (cause) {
    throw usageError(`${name} cannot be read: ${(cause as Error).message}`)
  }
}
