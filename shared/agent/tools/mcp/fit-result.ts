import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'

/**
 * Converts the result of a call to one that the package accepts: otherwise one unknown block would make it refuse the whole answer,
 * although the call was carried out. Each block is read separately; an unreadable one becomes a text that shows it.
 */
export function fitResult(result: JsonObject): JsonObject {
  const { content, structuredContent, isError, _meta, ...rest } = result
  if (!Array.isArray(content) || (content.length > 0 && content.every(isEmptyText))) return result
  const blocks = content.map(fitBlock)
  const isStructured = isJsonObject(structuredContent)
  const isOther = !isStructured && structuredContent !== undefined && structuredContent !== null
  return {
    ...rest,
    ...(isJsonObject(_meta) && { _meta }),
    ...(isStructured && { structuredContent }),
    content: isOther ? [...blocks, shown(structuredContent)] : blocks,
    ...(isError !== undefined && isError !== null && { isError: isError === true || isError === 'true' }),
  }
}

/** Whether the block is an empty text. An answer with only such blocks counts as empty. */
const isEmptyText = (block: unknown): boolean =>
  isJsonObject(block) && block['type'] === 'text' && typeof block['text'] !== 'string'

function fitBlock(block: unknown): JsonObject {
  if (!isJsonObject(block)) return shown(block)
  const { type, text, data, mimeType, resource, uri, name } = block
  if (type === 'text' && typeof text === 'string') return { type, text }
  if ((type === 'image' || type === 'audio') && typeof data === 'string') {
    const base64 = withoutHead(data)
    return isBase64(base64) ? { type, data: base64, mimeType: textOr(mimeType, 'an unknown type') } : unreadable(type)
  }
  if (type === 'resource_link' && typeof uri === 'string')
    return { type, uri, name: textOr(name, uri), ...textsOf(block, ['title', 'description', 'mimeType']) }
  return type === 'resource' && isJsonObject(resource) ? fitResource(resource) : shown(block)
}

function fitResource(resource: JsonObject): JsonObject {
  const { text, blob, mimeType } = resource
  const head = { uri: textOr(resource['uri'], 'without an address'), ...(typeof mimeType === 'string' && { mimeType }) }
  if (typeof text === 'string') return { type: 'resource', resource: { ...head, text } }
  if (typeof blob !== 'string') return shown(resource)
  const base64 = withoutHead(blob)
  return isBase64(base64) ? { type: 'resource', resource: { ...head, blob: base64 } } : unreadable('resource')
}

/** The named fields that are texts. */
const textsOf = (block: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.flatMap((name) => (typeof block[name] === 'string' ? [[name, block[name]]] : [])))

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other)

/** Some servers send a `data:` URL. */
const withoutHead = (data: string): string => data.replace(/^data:[^,]{0,200},/, '').replaceAll(/\s/g, '')

const isBase64 = (data: string): boolean => /^[A-Za-z0-9+/]*={0,2}$/.test(data) && data.length % 4 === 0

const unreadable = (type: string): JsonObject => ({ type: 'text', text: `[${type} that cannot be read]` })

const shown = (value: unknown): JsonObject => ({
  type: 'text',
  text: typeof value === 'string' ? value : JSON.stringify(value),
})
