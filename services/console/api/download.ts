import { ApiError } from '../../../shared/client/errors.ts'
import { saveFile } from '../base/save-file.ts'
import { leaving } from '../base/tab.ts'
import { apiUrl, newestToken } from './engine.ts'

/** Saves what a path of the API sends under this name. */
export async function download(path: string, name: string): Promise<void> {
  const bearer = await newestToken()
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  const response = await fetch(apiUrl() + path, { headers, signal: leaving().signal })
  if (!response.ok) throw new ApiError(response, await response.text())
  saveFile(await response.blob(), name)
}
