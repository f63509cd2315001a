import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Schema } from '../../../shared/client/client.ts'
import { usageError } from '../exit-codes.ts'
import { parseDocument } from '../read-document.ts'

export type Definition = Schema<'FlowRequest'>

export type FlowFile = { name: string; file: string; definition: Definition }

/** The flows of a folder in the format of FLOWS_DIR: `*.yaml` and `*.yml` files with a `name` and the fields of a definition. */
export async function readFlowFiles(dir: string): Promise<FlowFile[]> {
  const files = (await readdir(dir)).filter((file) => /^[^.].*\.ya?ml$/.test(file)).sort()
  const flows = await Promise.all(files.map((file) => readFlowFile(dir, file)))
  const byName = new Map<string, string>()
  for (const { name, file } of flows) {
    const other = byName.get(name)
    if (other !== undefined) throw usageError(`${other} and ${file} have the same flow ${name}`)
    byName.set(name, file)
  }
  return flows
}

/** The field `tenant` is only for the server's own FLOWS_DIR; here the token determines the tenant. */
async function readFlowFile(dir: string, file: string): Promise<FlowFile> {
  const { name, tenant: _tenant, ...definition } = await parseDocument(await readFile(join(dir, file), 'utf8'), file)
  if (typeof name !== 'string') throw usageError(`${file} has no name`)
  return { name, file, definition: definition as Definition }
}
