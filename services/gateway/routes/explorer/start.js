// Starts the API explorer, and shows the events of a stream while they arrive: Swagger UI itself shows a response when it has ended.
/* global SwaggerUIBundle, document, fetch, TextDecoder */

/** A `<` that begins none of the elements of Swagger UI's Markdown, which have no attribute but the address of a link. */
const NOT_PLAIN =
  /<(?!\/?(?:p|br|hr|em|strong|code|pre|ul|ol|li|blockquote|table|thead|tbody|tr|th|td|h[1-6]|a)>|a href="(?:https?:|\/|#)[^"<>]*"(?: (?:rel|target)="[^"<>]*")*>)/gi

// Swagger UI makes HTML from the descriptions. All but plain elements becomes text.
globalThis.trustedTypes?.createPolicy('default', { createHTML: (html) => html.replaceAll(NOT_PLAIN, '&lt;') })

const { url } = document.currentScript.dataset

/** The operation whose Execute button was clicked last. */
let operation

document.addEventListener(
  'click',
  ({ target }) => {
    if (target.closest('.execute')) operation = target.closest('.opblock')
  },
  true,
)

async function fetchAndShow(address, request) {
  const response = await fetch(address, request)
  operation?.querySelector('.live-stream')?.remove()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (isStream && operation) void show(response.clone().body, operation)
  return response
}

/** Appends the text of a stream to an operation as it arrives. */
async function show(body, { lastElementChild: place }) {
  const output = document.createElement('pre')
  output.className = 'live-stream microlight'
  output.style.cssText = 'margin: 0 20px 20px; max-height: 400px; overflow: auto; white-space: pre-wrap'
  place.prepend(output)
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      output.append(decoder.decode(next.value, { stream: true }))
      output.scrollTop = output.scrollHeight
    }
  } catch {
    output.append('\n[the connection broke]')
  }
}

/**
 * Resolves what one operation or schema refers to. Swagger UI's own resolver goes through the whole document first, which takes seconds
 * each time an operation is opened. The document has references to itself only.
 */
async function resolveSubtree(whole, path) {
  const at = (keys) => keys.reduce((value, key) => value?.[key], whole)
  const part = at(path)
  const [section, address, method] = path
  const isOperation = section === 'paths' && method !== undefined
  const inherited = (isOperation && at([section, address]).parameters) || []
  const full = inherited.length > 0 ? { ...part, parameters: [...inherited, ...(part.parameters ?? [])] } : part
  const find = (reference) => at(reference.slice('#/'.length).split('/').map(decodeKey))
  return { spec: withoutReferences(full, find), errors: [] }
}

/** A copy of a value in which each `$ref` is replaced by its target; a recursive one stays a `$ref`. */
function withoutReferences(value, find, outer = []) {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withoutReferences(item, find, outer))
  const { $ref: reference, ...own } = value
  if (typeof reference === 'string' && !outer.includes(reference))
    return { ...withoutReferences(find(reference), find, [...outer, reference]), ...withoutReferences(own, find, outer) }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutReferences(inner, find, outer)]))
}

/** A key of a JSON pointer (RFC 6901) in a URI fragment. */
const decodeKey = (key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')

SwaggerUIBundle({
  url,
  dom_id: '#explorer',
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: (request) => Object.assign(request, { userFetch: fetchAndShow }),
  plugins: [
    { fn: { resolveSubtree } },
    // Swagger UI would link the licence to a page on a foreign host.
    { wrapComponents: { License: () => () => null, OAS31License: () => () => null } },
  ],
})
