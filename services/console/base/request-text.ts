/** A request to the API, as pages name it. */
export type ApiRequest = {
  method: string
  path: string
  query?: Readonly<Record<string, string | undefined>>
  body?: unknown
}

type Target = { url: string; hasToken: boolean }

/** The request for a shell, with `$AE_TOKEN` in place of the token, which is never shown. */
export function asCurl({ method, path, query, body }: ApiRequest, { url, hasToken }: Target): string {
  const parts = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(`${url}${path}${searchOf(query)}`)}`,
    ...(hasToken ? ['-H "Authorization: Bearer $AE_TOKEN"'] : []),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
  ]
  return parts.join(' \\\n  ')
}

/** For the project's command line, which knows the address and the token. */
export function asAe({ method, path, query, body }: ApiRequest): string {
  const sent = body === undefined ? '' : ` -d ${quoted(JSON.stringify(body))}`
  return `ae api ${method} ${quoted(path + searchOf(query))}${sent}`
}

export function asTypeScript({ method, path, query, body }: ApiRequest, { url, hasToken }: Target): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  const options = [
    ...(given.length > 0 ? [`query: ${JSON.stringify(Object.fromEntries(given))}`] : []),
    ...(body === undefined ? [] : [`body: ${JSON.stringify(body, null, 2)}`]),
  ]
  const token = hasToken ? ', token: () => process.env.AE_TOKEN' : ''
  const rest = options.length > 0 ? `, { ${options.join(', ')} }` : ''
  return `const engine = new AgentEngine({ url: '${url}'${token} })\nconst answer = await engine.raw.${method.toLowerCase()}('${path}'${rest})`
}

const searchOf = (query: ApiRequest['query'] = {}) => {
  const given = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** A word of a shell, whatever it holds. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
