import { existsSync, renameSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { lateFile } from '../services/wiring/quick-imports.ts'

// Builds the product's programs into built/, as the image has them in services/: a main.ts for each, and its modules and Express as a few files beside it,
// which saves 40 % of the CPU of a start and a fifth of the memory at rest. Other packages, data such as openapi.yaml, and the modules of threads stay where they are.
const root = join(import.meta.dirname, '..')
const built = join(root, 'built')
const fresh = `${built}-${process.pid}` // As deep as services/.

for (const program of ['gateway', 'worker', 'executor', 'standalone']) await buildProgram(program)
const former = `${fresh}-former`
if (existsSync(built)) renameSync(built, former) // Programs may be starting from it.
renameSync(fresh, built)
rmSync(former, { recursive: true, force: true })

/** Each by itself: files that several share would hold more than one of them loads. */
function buildProgram(name: string) {
  const outDir = join(fresh, name)
  return build({
    root,
    configFile: false,
    logLevel: 'warn',
    plugins: [keepPlaces(outDir), lateParts(outDir)],
    ssr: { noExternal: true },
    build: {
      ssr: join(root, `services/${name}/main.ts`), // For Node.
      outDir,
      target: 'node24',
      rolldownOptions: { external: staysOutside, output: { entryFileNames: 'main.ts', chunkFileNames: '[name].js' } },
    },
  })
}

/** A module that asks where it is, for a file beside it or a package, gets the place of its source. */
function keepPlaces(outDir: string): Plugin {
  return {
    name: 'keep-places',
    transform(code, id) {
      if (id.startsWith('\0')) return undefined // A part of the bundler.
      if (/\bimport\.meta\.(dirname|filename)\b/.test(code))
        this.error(`${id} asks where it is without import.meta.url`)
      const place = JSON.stringify(relative(outDir, id))
      return code.replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`)
    },
  }
}

/** Express gets its seldom used packages when they are called, as from the source. No other import has to be found by its name. */
function lateParts(outDir: string): Plugin {
  return {
    name: 'late-parts',
    enforce: 'pre',
    resolveId(id, parent) {
      const file = lateFile(id, parent)
      return file && { id: relative(outDir, fileURLToPath(file)), external: true }
    },
    load: (id) => (id.endsWith('/quick-imports.ts') ? 'export const findImportsByName = () => {}' : undefined),
  }
}

/** Whether a package stays where it is. Express and what it needs do not, since each start loads them. */
function staysOutside(id: string, parent = ''): boolean {
  if (isBuiltin(id)) return true
  const isPackage = !/^[./\0]/.test(id)
  return isPackage && id !== 'express' && !parent.includes('/node_modules/')
}
