import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'
import { packShell } from './console-shell.ts'
import { measureConsole } from './console-sizes.ts'

// Builds services/console into services/console/built, each file also compressed. A start that is served meanwhile keeps the files that it has read.
const root = join(import.meta.dirname, '../services/console')
const built = join(root, 'built')
const fresh = `${built}-${process.pid}`

// Each by itself: what the two shared would be chunks of its own, and the console's shell would be larger.
for (const page of ['index', 'cluster']) await buildPage(page)
for (const name of readdirSync(fresh, { recursive: true, encoding: 'utf8' })) if (extname(name) !== '') compress(name)
rmSync(built, { recursive: true, force: true })
renameSync(fresh, built)
const { shell, routes, all } = measureConsole(built)
const kb = (bytes: number) => `${(bytes / 1_024).toFixed(1)} KB`
console.log(
  `Built as gzip: shell ${kb(shell)}, largest page ${kb(Math.max(...routes.values()))}, everything ${kb(all)}`,
)

function compress(name: string): void {
  const path = join(fresh, name)
  const bytes = readFileSync(path)
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }))
}

function buildPage(page: string) {
  return build({
    root,
    base: '/console/',
    configFile: false,
    logLevel: 'warn',
    build: {
      outDir: fresh,
      emptyOutDir: false,
      target: 'es2023',
      assetsInlineLimit: 0, // The page's policy allows no data: scripts or styles.
      modulePreload: { polyfill: false },
      cssCodeSplit: true,
      manifest: page === 'index', // For `measureConsole`; it is not served.
      reportCompressedSize: false,
      rolldownOptions: { input: join(root, `${page}.html`) },
    },
    plugins: page === 'index' ? [packShell(root)] : [],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  })
}
