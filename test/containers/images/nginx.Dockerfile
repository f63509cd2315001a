# What compose.yaml uses of the official image of nginx.
ARG BASE
FROM ${BASE}
RUN groupadd --gid 101 nginx && useradd --uid 101 --gid nginx --no-create-home nginx
COPY nginx /usr/sbin/nginx
STOPSIGNAL SIGQUIT
EXPOSE 80
CMD ["nginx", "-g", "daemon off;"]
