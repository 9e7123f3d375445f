export const dashboardFiles = (): Readonly<Record<string, string>> => ({});
