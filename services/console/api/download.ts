import { ApiError } from '../../../shared/client/errors.ts'
import { leaving } from '../base/tab.ts'
import { apiUrl, newestToken } from './engine.ts'

/** Downloads a path of the API and saves it under this name. */
export const download = async (path: string, name: string, accept?: string): Promise<void> =>
  saveFile(await contentOf(path, accept), name)

/** The bytes that a path of the API sends. */
export async function contentOf(path: string, accept = '*/*'): Promise<Blob> {
  const bearer = await newestToken()
  let response = await fetchBytes(path, accept, bearer)
  if (response.status === 401) response = await fetchBytes(path, accept, await newestToken(bearer))
  if (!response.ok) throw new ApiError(response, await response.text())
  return response.blob()
}

function fetchBytes(path: string, accept: string, bearer: string | undefined): Promise<Response> {
  const headers = { accept, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) }
  return fetch(apiUrl() + path, { headers, signal: leaving().signal })
}

/** Lets the browser save a file. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000)
}
