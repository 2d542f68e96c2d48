"""Hadoop's settings on one machine, without those of programs that do not run on it.

Spark sends Hadoop's settings to whoever reads or writes a file: in every micro-batch once for each
source, for the state and for the sink. There are eleven hundred of them, written one by one, each
with the compressed name of the file that it came from: ten milliseconds of CPU time each time. Two
thirds are defaults of YARN, of MapReduce's jobs and of servers. Nobody asks for these where there
is only Spark, and whoever does has the same default in its code, as all of Hadoop has.

So they are forgotten, in the settings of this session alone. What somebody has set is kept. If
Hadoop reads its files of defaults once more, they are back, and nothing is lost but the time.
"""

from __future__ import annotations

import contextlib

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_NEEDLESS = (
    r"^(yarn|ha|hadoop\.(http|registry|zk)|"
    r"mapreduce\.(am|client|cluster|ifile|job|jobhistory|jvm|map|reduce|shuffle|task))\..*"
)
_FORGET = """
    java.util.Iterator names = settings.getValByRegex(needless).keySet().iterator();
    while (names.hasNext()) {
        String name = (String) names.next();
        String[] origins = settings.getPropertySources(name);
        if (origins != null && origins[origins.length - 1].endsWith("-default.xml")) {
            settings.unset(name);
        }
    }
"""


def forget_needless_defaults(spark: SparkSession) -> None:
    """Make the settings that ``spark`` sends around fewer."""
    context = spark.sparkContext
    java, gateway = context._jvm, context._gateway
    if java is None or gateway is None:  # The session is on a server.
        return
    settings = context._jsc.hadoopConfiguration()
    java.org.apache.hadoop.mapred.JobConf(False)  # Whose defaults are read when it is first made.
    names = gateway.new_array(java.String, 2)
    names[0], names[1] = "settings", "needless"
    kinds = gateway.new_array(java.Class, 2)
    kinds[0], kinds[1] = settings.getClass(), java.Class.forName("java.lang.String")
    values = gateway.new_array(java.Object, 2)
    values[0], values[1] = settings, _NEEDLESS
    script = java.org.codehaus.janino.ScriptEvaluator()
    script.setParameters(names, kinds)
    with contextlib.suppress(Py4JError):  # Then they are sent around as ever.
        script.cook(_FORGET)
        script.evaluate(values)
