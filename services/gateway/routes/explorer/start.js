// Starts the API explorer, and shows the events of a stream while they arrive: Swagger UI itself shows a response when it has ended.
/* global SwaggerUIBundle, document, fetch, TextDecoder */

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

SwaggerUIBundle({
  url,
  dom_id: '#explorer',
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: (request) => Object.assign(request, { userFetch: fetchAndShow }),
  // It would link the licence to a page of a foreign host.
  plugins: [{ wrapComponents: { License: () => () => null, OAS31License: () => () => null } }],
})
