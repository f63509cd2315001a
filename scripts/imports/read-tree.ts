import { join, posix, relative, sep } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { type FileFacts, readFile } from './read-file.ts'

/** The facts of each file, by its path from the project's folder. */
export type Tree = ReadonlyMap<string, FileFacts>

/** Parses every file that `tsconfig.json` in `root` includes, but the generated types. */
export function readTree(root: string): Tree {
  const api = new API({ cwd: root })
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()
    if (project === undefined) throw new Error(`no tsconfig.json in ${root}`)
    const tree = new Map<string, FileFacts>()
    for (const name of project.rootFiles.filter((file) => !file.endsWith('.d.ts'))) {
      const file = project.program.getSourceFile(name)
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

export const isFile = (target: string) => /\.m?ts$/.test(target)
