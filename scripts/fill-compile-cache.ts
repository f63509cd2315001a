import { globSync } from 'node:fs'
import { join } from 'node:path'
import packageFile from '../package.json' with { type: 'json' }

// Runs in the build of the image. It imports every module of the product's processes and command line, the files that scripts/build-programs.ts has made of
// them, and every package. Node keeps the compiled code in NODE_COMPILE_CACHE. If the image lacks a module, the build fails. Modules have no effects when they
// are imported, except the entry points (main.ts), which are left out.
const root = join(import.meta.dirname, '..')
const FILES_ONLY = ['@bull-board/ui'] // It has pages, and no module.
const packages = Object.keys(packageFile.dependencies).filter((name) => !FILES_ONLY.includes(name))
const modules = globSync(['services/*/*.js', '{services,shared}/**/*.ts'], { cwd: root })
  .filter((file) => !/^services\/console\/|^shared\/client\/examples\/|\/main\.ts$|\.d\.ts$/.test(file))
  .map((file) => join(root, file))
for (const module of [...packages, ...modules]) await import(module)
