import { readdirSync, readFileSync } from 'node:fs'

/** The parts of a dashboard of Grafana that tests read. */
export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] }
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly datasource: { readonly uid: string }
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
}

const folder = new URL('../../deploy/grafana/dashboards/', import.meta.url)

export const dashboardTexts: readonly string[] = readdirSync(folder).map((name) =>
  readFileSync(new URL(name, folder), 'utf8'),
)
export const dashboards: readonly Dashboard[] = dashboardTexts.map((text) => JSON.parse(text) as Dashboard)

/** The expressions of all panels as Prometheus gets them, with every value of each variable and this window. */
export function panelExpressions(window: string): readonly string[] {
  return dashboards.flatMap(({ panels, templating }) =>
    panels
      .flatMap(({ targets }) => targets)
      .map(({ expr }) =>
        templating.list.reduce(
          (text, { name }) => text.replaceAll(`$${name}`, '.*'),
          expr.replaceAll('$__rate_interval', window),
        ),
      ),
  )
}
