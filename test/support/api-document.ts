import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { type ApiDocument, readDocument } from '../../shared/platform/api/document.ts'
import { type Contract, createContract } from '../platform/api/contract.ts'

let document: Promise<ApiDocument> | undefined
let contract: Promise<Contract> | undefined

/** The API description as a server without authentication serves it, read once in a process. It must not be changed. */
export const apiDocument = (): Promise<ApiDocument> => (document ??= readKept())

/**
 * The checks of answers against the API description, compiled once in a process: the answers are described in the same way whatever the base
 * path and the authentication are.
 */
export const apiContract = (): Promise<Contract> => (contract ??= apiDocument().then(createContract))

/** Each of the processes of `scripts/test` reads it, and parsing its YAML takes half a second: the first one keeps it as JSON. */
async function readKept(): Promise<ApiDocument> {
  const sources = ['document.ts', 'openapi.yaml'].map(
    (name) => new URL(`../../shared/platform/api/${name}`, import.meta.url),
  )
  const hash = createHash('sha256')
  for (const source of sources) hash.update(await readFile(source))
  const kept = new URL(`../../node_modules/.cache/api/${hash.digest('hex')}.json`, import.meta.url)
  const text = await readFile(kept, 'utf8').catch(() => undefined)
  if (text !== undefined) return JSON.parse(text) as ApiDocument
  const read = await readDocument({ basePath: '/v1', authentication: 'none' })
  await mkdir(new URL('.', kept), { recursive: true })
  const own = new URL(`${kept.pathname}.${process.pid}`, import.meta.url)
  await writeFile(own, JSON.stringify(read))
  await rename(own, kept)
  return read
}
