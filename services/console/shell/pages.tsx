import type { FunctionComponent } from 'preact'
import { has, may } from '../api/caller.ts'
import type { PageProps } from '../base/router.ts'
import type { IconName } from '../parts/icon.tsx'

/** A page that an address names. Its code is loaded when it is opened. */
export type View = {
  /** Its paths, `:name?` for a part that may be missing. */
  patterns: readonly string[]
  load(): Promise<FunctionComponent<PageProps>>
}

export type Page = View & {
  name: string
  icon: IconName
  /** The path of its rail entry. */
  path: string
  /** The page of one entry of the list, if its code is loaded separately. */
  one?: View
  /** The second key of `g x`. */
  key: string
  isOffered(): boolean
}

/** The pages of the rail, in its order. The code of each is loaded when it is opened. */
const PAGES: readonly Page[] = [
  {
    name: 'Home',
    icon: 'home',
    path: '/',
    patterns: ['/'],
    key: 'h',
    isOffered: () => may('read'),
    load: () => import('../pages/home/home.tsx').then(({ Home }) => Home),
  },
  {
    name: 'Chat',
    icon: 'chat',
    path: '/chat',
    patterns: ['/chat/:session?'],
    key: 'c',
    isOffered: () => may('read') && may('run'),
    load: () => import('../pages/chat/chat.tsx').then(({ Chat }) => Chat),
  },
  {
    name: 'Approvals',
    icon: 'approvals',
    path: '/approvals',
    patterns: ['/approvals/:id?'],
    key: 'a',
    isOffered: () => may('read'),
    load: () => import('../pages/approvals/approvals.tsx').then(({ Approvals }) => Approvals),
  },
  {
    name: 'Flows',
    icon: 'flows',
    path: '/flows',
    patterns: ['/flows/:name?/:view?'],
    key: 'f',
    isOffered: () => may('read') && has('flows'),
    load: () => import('../pages/flows/flows.tsx').then(({ Flows }) => Flows),
  },
  {
    name: 'Plans',
    icon: 'plans',
    path: '/plans',
    patterns: ['/plans/:id?'],
    key: 'p',
    isOffered: () => may('read') && has('plans'),
    load: () => import('../pages/plans/plans.tsx').then(({ Plans }) => Plans),
  },
  {
    name: 'Activity',
    icon: 'activity',
    path: '/activity',
    patterns: ['/activity'],
    key: 'v',
    isOffered: () => may('read'),
    load: () => import('../pages/activity/activity.tsx').then(({ Activity }) => Activity),
    one: {
      patterns: ['/activity/:run'],
      load: () => import('../pages/activity/run-page.tsx').then(({ RunPage }) => RunPage),
    },
  },
  {
    name: 'Usage',
    icon: 'usage',
    path: '/usage',
    patterns: ['/usage'],
    key: 'u',
    isOffered: () => may('read'),
    load: () => import('../pages/usage/usage.tsx').then(({ Usage }) => Usage),
  },
  {
    name: 'Settings',
    icon: 'settings',
    path: '/settings',
    patterns: ['/settings'],
    key: 's',
    isOffered: () => may('admin'),
    load: () => import('../pages/settings/settings.tsx').then(({ Settings }) => Settings),
  },
]

export const offered = (): readonly Page[] => PAGES.filter((page) => page.isOffered())
