import { parse } from 'yaml'
import { isObject, type JsonObject } from '../../../base/json-value.ts'

/** A flow from a file. A flow without a name gets the name of the file. */
export type FlowFile = { name: string; definition: JsonObject }

/** FLOWS_DIR takes no larger one. */
const MAX_BYTES = 2 * 1024 * 1024

/**
 * Reads a flow from a file as the export, FLOWS_DIR and `ae flows push` have it: YAML, of which JSON is a part. Throws
 * an error that names the problem.
 */
export async function readFlowFile(file: Pick<File, 'name' | 'size' | 'text'>): Promise<FlowFile> {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} is larger than 2 MB.`)
  const value: unknown = JSON.parse(JSON.stringify(parsed(await file.text(), file.name)) ?? 'null')
  if (!isObject(value)) throw new Error(`${file.name} holds no flow: write name, input_schema and output_schema.`)
  const { name, tenant: _tenant, ...definition } = value
  return { name: typeof name === 'string' ? name : file.name.replace(/\.[^.]*$/, ''), definition }
}

function parsed(text: string, name: string): unknown {
  try {
    return parse(text, { maxAliasCount: 100, logLevel: 'error' })
  } catch (cause) {
    const [why = ''] = cause instanceof Error ? cause.message.split('\n') : []
    throw new Error(`${name} is no YAML: ${why}`, { cause })
  }
}
