import { existsSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { type FileFacts, readFile } from './read-file.ts'

/** The facts of each file, by its path from the project's folder. */
export type Tree = ReadonlyMap<string, FileFacts>

/** The console is a project of its own, because it runs in browsers. */
const PROJECTS = ['tsconfig.json', 'services/console/tsconfig.json']

/** Parses every file that the projects in `root` include, but the generated types. */
export function readTree(root: string): Tree {
  const api = new API({ cwd: root })
  try {
    const openProjects = PROJECTS.map((path) => join(root, path)).filter((path) => existsSync(path))
    const projects = api.updateSnapshot({ openProjects }).getProjects()
    if (projects.length === 0) throw new Error(`no tsconfig.json in ${root}`)
    const tree = new Map<string, FileFacts>()
    for (const { rootFiles, program } of projects)
      for (const name of rootFiles.filter((file) => !file.endsWith('.d.ts'))) {
        const file = program.getSourceFile(name)
        if (file) tree.set(relative(root, name).split(sep).join('/'), readFile(file))
      }
    return tree
  } finally {
    api.close()
  }
}

/** Resolves a specifier to a path of the tree, `node:x` or a package's name. A file that is not TypeScript stays as it is. */
export function targetOf(from: string, specifier: string): string {
  if (/^\.{1,2}\//.test(specifier)) return isFile(specifier) ? posix.join(posix.dirname(from), specifier) : specifier
  if (specifier.startsWith('node:')) return specifier
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

export const isFile = (target: string) => /\.(m?ts|tsx)$/.test(target)
