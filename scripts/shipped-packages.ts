import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** A package of the image. `integrity` is that of its archive, as in the lock file. */
export type Shipped = { name: string; version: string; licence: string | undefined; integrity: string | undefined }

type Package = {
  version: string
  license?: string
  integrity?: string
  dev?: boolean
  optional?: boolean
  devOptional?: boolean
}

/** The packages that `npm ci --omit=dev --omit=optional` installs, as deploy/Dockerfile does, from the package-lock.json in this folder. */
export function shippedPackages(root: string): Shipped[] {
  const { packages } = JSON.parse(readFileSync(resolve(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Package>
  }
  return Object.entries(packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional)
    .map(([path, { version, license, integrity }]) => ({
      name: path.split('node_modules/').at(-1) ?? path,
      version,
      licence: license,
      integrity,
    }))
}
