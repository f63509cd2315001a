import { type ResolveHookSync, registerHooks } from 'node:module'

const OWN_FILE = /^\.{1,2}\/.*\.ts$/

/**
 * Packages that Express loads for its body parsers and a query parser, which only the page of queues uses. With their dependencies they take 30
 * of a start's 350 ms of CPU time, and 3 MiB.
 */
const SELDOM_USED: ReadonlySet<string> = new Set(['body-parser', 'qs'])
const LATE = new URL('late-packages.cjs', import.meta.url).href

/** The file that Express gets in place of a package. */
export const lateFile = (specifier: string, parent: string | undefined): string | undefined =>
  SELDOM_USED.has(specifier) && parent?.includes('/node_modules/express/lib/') ? LATE : undefined

/**
 * Finds a file of this project by its name alone. Node itself would check whether each file exists and has links on its path, and search
 * the nearest package.json. A file that is missing fails when it is read.
 */
export const findByName: ResolveHookSync = (specifier, context, next) => {
  const { parentURL } = context
  const late = lateFile(specifier, parentURL)
  if (late) return { url: late, format: 'commonjs', shortCircuit: true }
  if (parentURL === undefined || !OWN_FILE.test(specifier)) return next(specifier, context)
  return { url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true }
}

/** From now on this thread finds the files that it imports by their names, which saves a fifth of the CPU time of a start. */
export const findImportsByName = (): void => void registerHooks({ resolve: findByName })
