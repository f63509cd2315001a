/** The shapes of the icons, as paths in a square of 16. All are our own. */
const PATHS = {
  home: 'M2.5 7 8 2.5 13.5 7v6.5h-4V10h-3v3.5h-4z',
  chat: 'M2.5 3.5h11v8h-6l-3 2.5v-2.5h-2z',
  approvals: 'M8 1.8 13 4v4c0 3-2 5.2-5 6.2C5 13.2 3 11 3 8V4zM5.8 8l1.6 1.6L10.4 6.4',
  flows: 'M3 3h4v3H3zM9 10h4v3H9zM5 6v5.5h4',
  plans: 'M2.5 4h5M5 8h6M8.5 12h5',
  activity: 'M1.5 8.5h3l2-5.5 3 10 2-4.5h3',
  usage: 'M3 13V8.5M6.3 13V5M9.6 13V7M13 13V3',
  settings: 'M2.5 4.5h6M12 4.5h1.5M10.2 3v3M2.5 11.5H4M7.5 11.5h6M5.8 10v3',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  check: 'M3 8.5 6.5 12 13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  warn: 'M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.01',
  info: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 7.2v4M8 4.9v.01',
  clock: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 4.6V8l2.3 1.6',
  spinner: 'M8 1.8a6.2 6.2 0 1 1-6.2 6.2',
  stop: 'M4 4h8v8H4z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  dash: 'M3.5 8h9',
  plus: 'M8 3v10M3 8h10',
  send: 'M8 13V3.5M4 7.2 8 3.2l4 4',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  right: 'M6 3.5 10.5 8 6 12.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  tool: 'M9.5 2.5a3.6 3.6 0 0 0-3.3 5l-3.7 3.7 2.3 2.3 3.7-3.7a3.6 3.6 0 0 0 4.8-4.4L11 7.7 8.3 5l2.3-2.3',
  agent: 'M3 6h10v7H3zM8 6V3M6 9.2v.01M10 9.2v.01',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.4 10.4l3.4 3.4',
  trash: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.6 9h5.8l.6-9',
  events: 'M5.5 4 2 8l3.5 4M10.5 4 14 8l-3.5 4',
  back: 'M10 3.5 5.5 8l4.5 4.5',
} as const

export type IconName = keyof typeof PATHS

/** A drawing beside a word that says the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon-svg"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
