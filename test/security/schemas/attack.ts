import { isJsonObject, parseJson } from '../../../shared/kernel/json.ts'
import { findExcess } from '../../../shared/platform/schemas/size.ts'
import type { Hostile } from '../../platform/schemas/hostile.ts'
import type { Answer } from '../../support/model-server/model-server.ts'
import type { Received } from '../../support/model-server/received.ts'
import { ANYTHING, type FlowClient } from './flow-client.ts'

/** An event of a provider may have 1 MB. */
const PIECES = /.{1,100000}/gs
/** A little more than a body may have. */
const SENDABLE = { bytes: 11_000_000, depth: 10_000, nodes: 3_000_000, values: 3_000_000 }

/** Schemas whose JSON is hardly longer than a body may be: as objects in memory, some are exponentially shorter than as JSON. */
export const isSendable = ({ schema, value }: Hostile): boolean =>
  !findExcess(schema, SENDABLE) && !findExcess(value, SENDABLE)

/** Uses each schema for the input of a flow and then for its output, each time with the hostile value. */
export async function attackWith(cases: readonly Hostile[], client: FlowClient, flow: string): Promise<void> {
  for (const { name, schema, value } of cases) {
    const asInput = { input_schema: schemaOfObject(schema, value), output_schema: ANYTHING }
    if (await client.publish(name, flow, asInput)) await client.run(name, flow, isJsonObject(value) ? value : { value })
    const asOutput = { input_schema: ANYTHING, output_schema: schema }
    if (await client.publish(name, flow, asOutput)) await client.run(name, flow, { hostile: name })
  }
}

/** The input of a flow is always an object: another value is put into one. */
const schemaOfObject = (schema: object, value: unknown): object =>
  isJsonObject(value) ? schema : { type: 'object', properties: { value: schema } }

/** The model's answer: the hostile value that the input names, else an empty object. */
export function answerHostile(cases: readonly Hostile[]): (request: Pick<Received, 'prompt'>) => Answer {
  const values = new Map(cases.map(({ name, value }) => [name, value]))
  return ({ prompt }) => {
    const envelope = parseJson(prompt)
    const input = isJsonObject(envelope) && isJsonObject(envelope['input']) ? envelope['input'] : {}
    const text = JSON.stringify(values.get(String(input['hostile'])) ?? {})
    return [{ text: text.match(PIECES) ?? [] }]
  }
}
