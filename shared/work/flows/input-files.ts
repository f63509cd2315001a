import type { Files } from '../../agent/files/files.ts'
import { type AttachedFile, fileKindOf } from '../../kernel/attachment.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { escapePointer, isJsonObject } from '../../kernel/json.ts'
import type { TenantId } from '../../kernel/tenant.ts'

type Place = { value: string; mediaType: string; at: string }

const FILE_ID = /^file_[0-9a-f]{32}$/

/**
 * The files that the input of a flow names: a property whose schema has `contentMediaType` holds a `file_id` (D47.6), `image/*` accepts every type of
 * image. Throws `not_found`, and `invalid_request` for a value that is no id, a file of another type, and a file that no model may get.
 */
export async function inputFiles(
  tenant: TenantId,
  { schema, input }: { schema: JsonObject; input: unknown },
  files: Pick<Files, 'attached'>,
): Promise<AttachedFile[]> {
  const places = placesIn(schema, input, '/input')
  if (places.length === 0) return []
  const found = await files.attached(
    tenant,
    places.map(({ value }) => value),
    (index) => places[index]?.at ?? '/input',
  )
  for (const [i, { at, mediaType }] of places.entries()) {
    const { media_type: type = '', name } = found[i] ?? {}
    const isMeant = mediaType.endsWith('/*') ? type.startsWith(mediaType.slice(0, -1)) : type === mediaType
    if (!isMeant) throw invalidRequest(`${JSON.stringify(name)} is ${type}: the flow takes ${mediaType}`, { param: at })
  }
  return found
}

/**
 * Finds the places of files in the properties and items of a schema. Content within the input itself has a
 * `contentEncoding`, or is a text and no id.
 */
function placesIn(schema: unknown, value: unknown, at: string): Place[] {
  if (!isJsonObject(schema)) return []
  const { contentMediaType: mediaType, contentEncoding, properties, items } = schema
  if (typeof mediaType === 'string' && typeof value === 'string' && contentEncoding === undefined) {
    if (FILE_ID.test(value)) return [{ value, mediaType, at }]
    if (fileKindOf(mediaType) === 'text') return []
    throw invalidRequest(`the input must be the file_id of a file of the type ${mediaType}`, { param: at })
  }
  if (Array.isArray(value)) return value.flatMap((each: unknown, i) => placesIn(items, each, `${at}/${i}`))
  if (!isJsonObject(value) || !isJsonObject(properties)) return []
  return Object.entries(properties).flatMap(([name, each]) =>
    placesIn(each, value[name], `${at}/${escapePointer(name)}`),
  )
}
