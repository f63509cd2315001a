import { spawnSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Builds what `npm pack` puts into the client's package, in shared/client/dist: modules and types, and LICENSE beside it. They are compiled against the types of
// browsers alone, so that nothing of Node can come in. Needs the types that `npm run api-types` makes. Run by `npm run client:pack`.
const root = new URL('..', import.meta.url).pathname
const dist = join(root, 'shared/client/dist')

rmSync(dist, { recursive: true, force: true })
const compiler = join(root, 'node_modules/typescript/bin/tsc')
const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'shared/client')], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

// The compiler rewrites the imports of modules, and not those of types.
for (const file of globSync('client/**/*.d.ts', { cwd: dist })) {
  const types = readFileSync(join(dist, file), 'utf8')
  writeFileSync(join(dist, file), types.replaceAll(/(from '\.[^']*?)(?:\.d)?\.ts'/g, "$1.js'"))
}
mkdirSync(join(dist, 'platform/api'), { recursive: true })
copyFileSync(join(root, 'shared/platform/api/openapi.d.ts'), join(dist, 'platform/api/openapi.d.ts'))
copyFileSync(join(root, 'LICENSE'), join(root, 'shared/client/LICENSE'))
