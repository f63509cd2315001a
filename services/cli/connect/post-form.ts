import { ApiError, ConnectionFailed } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { accessTo } from './connect.ts'

/** Sends a form, which the client does not: it sends JSON. Resolves with the text of a good answer, and throws what the client throws. */
export async function postForm(
  path: string,
  { form, signal }: { form: FormData; signal: AbortSignal },
  { io, target }: Pick<Cli, 'io' | 'target'>,
): Promise<string> {
  const { url, token } = accessTo(io, await target())
  const fail = (cause: unknown): never => {
    throw signal.aborted ? cause : new ConnectionFailed('the connection failed', { cause })
  }
  const send = (bearer: string | undefined) =>
    fetch(url.replace(/\/+$/, '') + path, {
      ...{ method: 'POST', body: form, signal },
      headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    }).catch(fail)
  const first = typeof token === 'function' ? await token() : token
  let response = await send(first)
  if (response.status === 401 && typeof token === 'function') {
    await response.body?.cancel()
    response = await send(await token(first))
  }
  const body = await response.text().catch(fail)
  if (!response.ok) throw new ApiError(response, body)
  return body
}
