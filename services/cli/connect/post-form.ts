import { ApiError, ConnectionFailed } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { accessTo } from './connect.ts'

type Where = Pick<Cli, 'io' | 'target'>

/** Sends a form, which the client does not: it sends JSON. Resolves with the text of a good answer, and throws what the client throws. */
export async function postForm(
  path: string,
  { form, signal }: { form: FormData; signal: AbortSignal },
  where: Where,
): Promise<string> {
  const response = await send(path, { method: 'POST', body: form, signal }, where)
  return response.text().catch((cause: unknown) => broken(cause, signal))
}

/** The bytes of a good answer. */
export async function getBody(path: string, signal: AbortSignal, where: Where): Promise<Response['body']> {
  return (await send(path, { signal }, where)).body
}

/** A token that is refused is asked for again, once. */
async function send(
  path: string,
  init: RequestInit & { signal: AbortSignal },
  { io, target }: Where,
): Promise<Response> {
  const { url, token } = accessTo(io, await target())
  const sendWith = (bearer: string | undefined) =>
    fetch(url.replace(/\/+$/, '') + path, {
      ...init,
      headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    }).catch((cause: unknown) => broken(cause, init.signal))
  const first = typeof token === 'function' ? await token() : token
  let response = await sendWith(first)
  if (response.status === 401 && typeof token === 'function') {
    await response.body?.cancel()
    response = await sendWith(await token(first))
  }
  if (response.ok) return response
  throw new ApiError(response, await response.text().catch((cause: unknown) => broken(cause, init.signal)))
}

function broken(cause: unknown, { aborted }: AbortSignal): never {
  throw aborted ? cause : new ConnectionFailed('the connection failed', { cause })
}
