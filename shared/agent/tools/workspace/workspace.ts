import { createHash } from 'node:crypto'
import { cp, lstat, mkdir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join, posix, sep, win32 } from 'node:path'
import { invalidRequest, notFound } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { quoted } from '../../../kernel/text.ts'

const PATH_CHARS = 1_024
const PLAIN_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/
const SESSION_FOLDER = /^([^]*)\.([0-9a-f]{16})$/

/** A path inside the workspace with all symbolic links resolved. `root` is the resolved path of the workspace. */
export type Place = { root: string; path: string; exists: boolean }

/** The scope of a session's folder: a session that is created later with the same id has another token, and another folder. */
export const sessionFolder = (sessionId: string, token: string): string => `${sessionId}.${token}`

/**
 * The folder of one session, run or plan (D1.3 WORKSPACE_DIR). It is below `root`, and no two tenants or scopes share one. The scope
 * is the id of a run or plan, or `sessionFolder`.
 */
export const workspacePath = (root: string, tenant: TenantId, scope: string): string =>
  join(root, folderName(tenant), scopeName(scope))

/** Removes a workspace and its content, if it exists. Symbolic links are removed, not followed. */
export async function removeWorkspace(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 })
}

/** Copies a workspace, if it exists: its files, folders and symbolic links as they are. Other kinds of entries are left out. */
export async function copyWorkspace(from: string, to: string): Promise<void> {
  const filter = async (path: string) => {
    const stats = await lstat(path)
    return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()
  }
  const options = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter }
  await ignoring(isAbsent, cp(from, to, options))
}

/** Creates the workspace if it does not exist. Other users of the machine cannot read it. */
export async function makeWorkspace(workspace: string): Promise<void> {
  await mkdir(workspace, { recursive: true, mode: 0o700 })
}

/** The token of a session stays readable after its id. */
function scopeName(scope: string): string {
  const [, id, token] = SESSION_FOLDER.exec(scope) ?? []
  return id === undefined ? folderName(scope) : `${folderName(id)}.${token}`
}

/** Keeps a plain id as the folder's name and hashes any other, so that no name contains `..` or `:`, or differs from another one only in case. */
function folderName(id: string): string {
  return PLAIN_NAME.test(id) ? id : `sha256.${createHash('sha256').update(id).digest('hex')}`
}

/**
 * Normalizes a path from the model: relative, with `/` between names, `.` for the workspace itself (D5.2). Throws
 * `invalid_request` for a path that is absolute or holds `..`.
 */
export function relativePath(path: string): string {
  if (path.length > PATH_CHARS) throw invalidRequest(`The path is longer than ${PATH_CHARS} characters.`)
  if (path.includes('\0') || !path.isWellFormed())
    throw invalidRequest('The path contains characters that a file name cannot have.')
  if (posix.isAbsolute(path) || win32.isAbsolute(path)) {
    throw invalidRequest(`${quoted(path)}: absolute paths are not allowed. Give a path relative to the workspace.`)
  }
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (names.some((name) => name.split('\\').includes('..'))) {
    throw invalidRequest(`${quoted(path)}: ".." is not allowed. Give a path inside the workspace.`)
  }
  return names.join('/') || '.'
}

/**
 * Resolves `path` inside the workspace (D5.2). For a path that does not exist yet, it resolves the nearest existing parent.
 * Throws `invalid_request` when the path leaves the workspace, `not_found` when the workspace does not exist.
 */
export async function locate(workspace: string, path: string): Promise<Place> {
  const relative = relativePath(path)
  const root = await resolveIfExists(workspace)
  if (root === undefined) throw notFound(`${quoted(path)}: no such file or folder.`)
  return locateInside(root, join(root, relative))
}

async function locateInside(root: string, candidate: string): Promise<Place> {
  const real = await resolveIfExists(candidate)
  if (real !== undefined) {
    if (!isInside(root, real))
      throw invalidRequest(`${quoted(basename(candidate))} is a symbolic link that leaves the workspace.`)
    return { root, path: real, exists: true }
  }
  if (await isDangling(candidate)) {
    throw invalidRequest(`${quoted(basename(candidate))} is a symbolic link to something that does not exist.`)
  }
  const parent = await locateInside(root, dirname(candidate))
  return { root, path: join(parent.path, basename(candidate)), exists: false }
}

/** Whether `path` is `root` or lies below it; `/w/s10` is not inside `/w/s1`. Both paths are resolved. */
export const isInside = (root: string, path: string): boolean => path === root || path.startsWith(root + sep)

/** The path with its symbolic links resolved; `undefined` when it does not exist. */
const resolveIfExists = (path: string): Promise<string | undefined> => ignoring(isAbsent, realpath(path))

const isDangling = async (path: string): Promise<boolean> =>
  (await ignoring(isAbsent, lstat(path)))?.isSymbolicLink() ?? false

/** Resolves as `work` does, or with `undefined` if `isIgnored` accepts its error. */
export async function ignoring<T>(isIgnored: (cause: unknown) => boolean, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (cause) {
    if (isIgnored(cause)) return undefined
    throw cause
  }
}

export const isAbsent = (cause: unknown): boolean => hasCode(cause, ['ENOENT'])

/** Whether a search skips the entry that caused this error: it was removed or replaced, or it cannot be read. */
export const isUnreadable = (cause: unknown): boolean =>
  hasCode(cause, ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP'])

const hasCode = (cause: unknown, codes: string[]): boolean =>
  cause instanceof Error && 'code' in cause && codes.includes(String(cause.code))
