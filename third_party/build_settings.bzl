"""Command-line flags of our own (bazel_skylib's, without bazel_skylib)."""

BuildSettingInfo = provider(
    doc = "The value of a flag.",
    fields = ["value"],
)

def _impl(ctx):
    return BuildSettingInfo(value = ctx.build_setting_value)

bool_flag = rule(
    implementation = _impl,
    build_setting = config.bool(flag = True),
)

string_flag = rule(
    implementation = _impl,
    build_setting = config.string(flag = True),
)
