import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import picomatch from 'picomatch'

/** Decides as Docker does which files a .dockerignore lets through: the last pattern that matches a file, or a folder that it is in, counts. */
export function contextFilter(text: string): (path: string) => boolean {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const rules = lines.map((line) => {
    const isException = line.startsWith('!')
    return { isException, matches: picomatch(isException ? line.slice(1) : line, { dot: true }) }
  })
  return (path) => {
    const parts = path.split('/')
    const places = parts.map((_part, at) => parts.slice(0, at + 1).join('/'))
    return rules.findLast(({ matches }) => places.some((place) => matches(place)))?.isException ?? true
  }
}

/** The files below a file or folder of the build context, as paths in it. */
export function filesBelow(root: string, path: string, isLetThrough: (path: string) => boolean): string[] {
  const found = lstatSync(join(root, path), { throwIfNoEntry: false })
  if (!found?.isDirectory()) return found !== undefined && isLetThrough(path) ? [path] : []
  return readdirSync(join(root, path)).flatMap((name) => filesBelow(root, `${path}/${name}`, isLetThrough))
}
