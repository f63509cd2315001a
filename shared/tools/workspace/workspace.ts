import { createHash } from 'node:crypto'
import { lstat, mkdir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join, posix, sep, win32 } from 'node:path'
import { invalidRequest, notFound } from '../../errors.ts'
import type { TenantId } from '../../tenant.ts'

const PATH_CHARS = 1_024
const PLAIN_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** A path of the workspace after every symbolic link on it was followed. */
export type Place = { root: string; path: string; exists: boolean }

/** The folder of one session, run or plan (D1.3 WORKSPACE_DIR). Two tenants or scopes never share one, none lies outside `root`. */
export const workspacePath = (root: string, tenant: TenantId, scopeId: string): string =>
  join(root, folderName(tenant), folderName(scopeId))

/** Removes a workspace with all it holds; an absent one is fine. Symbolic links are removed, not followed. */
export async function removeWorkspace(root: string, tenant: TenantId, scopeId: string): Promise<void> {
  await rm(workspacePath(root, tenant, scopeId), { recursive: true, force: true, maxRetries: 3 })
}

/** Makes the workspace if it is not there yet; nobody else on the machine may look into it. */
export async function makeWorkspace(workspace: string): Promise<void> {
  await mkdir(workspace, { recursive: true, mode: 0o700 })
}

/** A plain name stands for itself. Any other is hashed: no `..`, no `:`, no two names that differ in case only. */
function folderName(id: string): string {
  return PLAIN_NAME.test(id) ? id : `sha256.${createHash('sha256').update(id).digest('hex')}`
}

/** The path as the workspace's own tools print it: relative, `/` between names, `.` for the workspace itself (D5.2). */
export function relativePath(path: string): string {
  if (path.length > PATH_CHARS) throw invalidRequest(`The path is longer than ${PATH_CHARS} characters.`)
  if (path.includes('\0') || !path.isWellFormed()) throw invalidRequest('The path holds characters no file name has.')
  if (posix.isAbsolute(path) || win32.isAbsolute(path)) {
    throw invalidRequest(`${path}: absolute paths are not allowed. Give a path relative to the workspace.`)
  }
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (names.some((name) => name.split('\\').includes('..'))) {
    throw invalidRequest(`${path}: ".." is not allowed. Give a path inside the workspace.`)
  }
  return names.join('/') || '.'
}

/**
 * Finds what `path` names inside the workspace (D5.2). For what does not exist yet, the nearest existing parent decides.
 * Throws `invalid_request` when it lies outside, `not_found` when there is no workspace yet.
 */
export async function locate(workspace: string, path: string): Promise<Place> {
  const relative = relativePath(path)
  const root = await resolved(workspace)
  if (root === undefined) throw notFound(`${path}: no such file or folder.`)
  return locateBelow(root, join(root, relative))
}

async function locateBelow(root: string, candidate: string): Promise<Place> {
  const real = await resolved(candidate)
  if (real !== undefined) {
    if (!isInside(root, real))
      throw invalidRequest(`${basename(candidate)} is a symbolic link that leaves the workspace.`)
    return { root, path: real, exists: true }
  }
  if (await isDangling(candidate)) {
    throw invalidRequest(`${basename(candidate)} is a symbolic link to something that does not exist.`)
  }
  const parent = await locateBelow(root, dirname(candidate))
  return { root, path: join(parent.path, basename(candidate)), exists: false }
}

export const isInside = (root: string, path: string): boolean => path === root || path.startsWith(root + sep)

/** The path with its symbolic links followed, `undefined` when nothing is there. */
async function resolved(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch (cause) {
    if (isAbsent(cause)) return undefined
    throw cause
  }
}

async function isDangling(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch (cause) {
    if (isAbsent(cause)) return false
    throw cause
  }
}

export const isAbsent = (cause: unknown): boolean => hasCode(cause, ['ENOENT'])

/** What a search passes over: a file or folder that vanished, was replaced, or may not be read. */
export const isUnreadable = (cause: unknown): boolean =>
  hasCode(cause, ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP'])

const hasCode = (cause: unknown, codes: string[]): boolean =>
  cause instanceof Error && 'code' in cause && codes.includes(String(cause.code))
